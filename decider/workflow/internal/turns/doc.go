// Package turns cuts the history of a run into turns. A turn is what one decision had to decide
// upon and, if the history has it, what was decided.
//
// The events of a turn are those that no completed decision has seen, up to the DeciderStarted of
// its own. A decision that failed or timed out is no turn: its events belong to the next one. What
// came between the DeciderStarted of a decision and its DeciderCompleted belongs to the turn after
// it, and so does the block of events that the decision has caused, which stands directly after the
// DeciderCompleted: code learns of them as of any other event, and in the same place, whether it
// runs for the first time or is replayed.
//
// So the turns of a history do not depend on how its events fell into decision tasks, pages or
// records. The package is pure; package workflow's runs are its callers.
package turns
