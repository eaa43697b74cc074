// Package partition is the owner of one partition: it appends every event of its workflows, asks
// their deciders, dispatches their tasks and answers requests about them. A broker makes one for
// each claim that it holds ([New], [Partition.Run]) and hands it the requests that reach this
// process ([Partition.Serve]). It knows no broker: what partitions share is in package env.
//
// What has a state of its own is a part, a package below this one that declares what it needs of
// the partition (its Host) and knows no more of it:
//
//	handover   take-over, checkpoints, and what a former owner has left undone
//	writer     records, and how full the history is
//	cache      the runs in memory: loading, passivation, histories that cannot be followed
//	intake     the two logs that are read: positions, signals that came early
//	decisions  decision tasks: whom to ask, deferred records, answers (deciders: the workers)
//	dispatch   activity tasks: offers, task lists
//	ahead      outcomes that come with the decision after them
//	probes     workers that are gone
//	exchange   messages between workflows
//	alarms     alarms that are armed and that are due (deadlines: their memory)
//	locking    locks and state keys (keyed: the queue of changes)
//	repeats    which requests were made before
//	large      payloads too large for a message
//	replays    an operator's replays
//	inspect    what tells of runs and changes nothing
//
// Here are the mailbox of a run and what happens to it (actor.go, settle.go), the start of a run
// (begin.go), what is set aside (aside.go), and the end of a term (leave.go). What is known of one
// run is package actor.
//
// A partition is owned through a claim by one broker, and served by one goroutine, its loop
// ([Partition.Run]). Everything that happens to the partition is a closure on that loop, so none of
// its state needs a lock. I/O never happens on the loop: publishes are asynchronous, reads run in
// goroutines of their own and post their answers.
//
// How a message becomes history:
//
//	inbox, signals ─► intake ─┐
//	starts, outcomes, alarms ─┴► run (mailbox) ─► execution.Step ─► record ─► history stream
//	                                                            acknowledged ◄─┘
//	                                                                 └► answers, effects
//
// What comes straight to the owner (ADR 0021 and 0022) is kept by its sender until the answer.
//
// Invariants:
//
//   - Every write to a history stream carries two expectations: the sequence that the stream's only
//     writer predicts, and the last sequence of the run's own subject. The first tells an owner at
//     once that somebody else has written, a new owner's fence above all; the second makes a fork
//     of a run impossible (P-2). After any refusal the owner forgets everything and takes over
//     anew.
//   - Effects are performed only after the record that caused them is acknowledged.
//   - A position in the checkpoint moves only past what is committed, and the effects position only
//     past records all of whose effects are acknowledged or covered by an armed alarm (P-1).
//   - No write is sent after the claim's own deadline (P-16).
package partition
