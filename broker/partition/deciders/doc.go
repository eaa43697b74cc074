// Package deciders is what a partition knows of those who decide for its runs: the decider workers
// with a subject of their own, and the runs that wait because nobody decides for their type.
//
//   - Registry says which worker gets the first task of a run, and which workers are to be probed
//     because something that they may have is late.
//   - Backlog keeps the workflow ids of the runs without a poller, in the order in which they came,
//     and says when they are asked for again.
//   - Deferrals has the runs whose records wait for a decision, and the types whose deciders are
//     late.
//
// Nothing here is in the history: another owner finds all of it out again. What is kept is bounded,
// since workers and types are names that anybody may give. A backlog keeps nothing of a type that
// no run waits for.
//
// Nothing here is safe for concurrent use: the loop of the partition is the only caller.
package deciders

import "time"

// Host is the partition.
type Host interface {
	// After calls f on the loop after d.
	After(d time.Duration, f func())
	// Recall asks the decider for a run that has left the backlog. It tells the queue how that
	// ended.
	Recall(wid string, from *Queue)
	// DeferralOver says that the record of a run has waited for the answer to an ask long enough,
	// if it waits still.
	DeferralOver(ask uint64)
}

// Deciders are the parts together, as a partition has them.
type Deciders struct {
	Workers   Registry
	Backlog   Backlog
	Deferrals Deferrals
}

// New returns the parts, empty.
func New(h Host) Deciders { return Deciders{Backlog: NewBacklog(h), Deferrals: NewDeferrals(h)} }
