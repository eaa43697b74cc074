// Package explain tells of a run what its state shows: what it waits for in one sentence, what the
// API describes of it, how it ended, and what an audit compares with the world.
//
// Everything is a function of an [execution.State] and of what the owner adds: a [Situation], the
// record of a lock, how a task list stands. Nothing is read, asked or changed here. Package broker
// reads what a sentence needs, and sends the answers.
package explain
