// Package activity runs activities: the part of a workflow that does work, at least once, on any
// machine.
//
// A [Worker] pulls tasks from its lists, runs the functions that are registered for their types,
// and reports what became of them:
//
//	w := activity.New(conn, &activity.Options{Lists: []string{"payments"}})
//	activity.Register(w, "charge", func(ctx context.Context, in Charge) (Receipt, error) { … })
//	err := w.Run(ctx)
//
// It is for users' programs and for the binary. It can neither read nor write a history. For each
// of its lists it needs the right to publish to
//
//	$JS.API.CONSUMER.MSG.NEXT.drover-<ns>-tasks-<list>.*          to pull
//	$JS.ACK.drover-<ns>-tasks-<list>.>                            to settle
//	drover.<ns>.in.*.*.act.<list>                                 to report and ask
//	drover.<ns>.beat.*.*.<list>                                   to heartbeat
//	drover.<ns>.outcome.*.*.<list>                                to give outcomes to owners
//	drover.<ns>.dead.undecodable-task.tasks.<list>.>              to bury
//	drover.<ns>.api.tasklist                                      to have the list opened; optional
//	drover.<ns>.api.upload, drover.<ns>.api.upload.>              to store results above 256 KiB; optional
//	drover.<ns>.api.download                                      to fetch such inputs; optional
//
// and to subscribe to its own inbox prefix, and to
//
//	drover.<ns>.control.<identity>                                to be told of cancel requests at once; optional
//	drover.<ns>.offer.<list>                                      to take quick tasks that were not stored; optional
//	drover.<ns>.owned.*                                           to hear that an owner has died; optional
//
// and no other. It takes offers only if it also hears control messages and may answer. A worker
// that may pull from the consumer "workers" alone takes tasks without priority only.
//
// # What is promised
//
//   - An outcome is given to the owner of the workflow by the outcome subject, or else stored by the
//     task's report subject, before the task is acknowledged. The history decides what counts: an
//     acknowledgement is a hint, an outcome is believed once and only with the current token.
//   - The first delivery of an idempotent task runs at once. If it still runs after
//     Options.StartedAfter its start is reported. An outcome may overtake that report, so it
//     carries the start as well.
//   - A task that is not idempotent, and any task that the server delivers again, is asked about
//     first, with one nonce for the whole delivery (P-7). It runs only if the owner of the workflow
//     says go, under the token it gives; else it is dropped, or left to its lease. So is, for ten
//     seconds, what was scheduled before the connection was lost, or before the task's partition
//     got another owner because the one before had died: it may be in hand here or done already
//     (ADR 0049). The first question about a task that is not idempotent, and of which none of this
//     is true, goes to the owner itself (ADR 0058).
//   - An offer (ADR 0023) is a task without a message, and so without a lease: its owner stores one
//     if the attempt takes long, and asks this worker when somebody else is given that. What cannot
//     be done is given back.
//   - A worker that stops and cannot end a task tells the owner of the workflow that it gives it
//     back, and then hands the message back. Else it would count as lost, and an activity whose
//     worker is lost too often in a row fails (ADR 0067).
//   - A task in hand is kept by in-progress acknowledgements, however long it takes. A worker that
//     dies stops sending them, and the task goes to another.
//   - A task of a type that is not registered here goes back to the list for others, at once. If it
//     comes back, since none of those that wait for tasks knows its type, it rests for a quarter of
//     a second, then half a second, up to 5 s. It is logged once per type. It is not failed: during
//     a rolling update some workers know it and others do not.
//   - A task that cannot be decoded becomes a dead letter and is taken off the list.
//   - An attempt that runs into its start-to-close or schedule-to-close limit has its context
//     cancelled, with [ErrStartToClose] or [ErrCloseBy] as cause. A failure that follows is not
//     reported: the service writes the timeout. A success is reported and may come too late.
//
// # Failures
//
// An error fails the attempt. The retry policy of the activity says whether another one follows; if
// another one cannot help, return [Final] of the error. [Fail] gives a failure a reason to compare.
//
// # Heartbeats
//
// [Heartbeat] is the activity's own statement that it makes progress. The worker never sends one by
// itself: a process that lives says nothing about an activity that hangs.
//
// The details of the last heartbeat come to the next attempt: [Resume].
//
// # Cancelling
//
// When the decider requests the end of an activity, its worker is told on its control subject; the
// answer to a heartbeat says the same. The activity's context is cancelled with [ErrCanceled] as
// cause. An activity that returns it, or its context's error, is reported as canceled; one that
// succeeds all the same as successful.
//
// In the same way it is told, with [ErrGone] as cause, that its heartbeat was missed or that its
// workflow has closed.
//
// # Priorities
//
// A list has three: above 0, 0 and below. While tasks wait, a slot that becomes free goes to the
// highest priority; within one the oldest task goes first. What runs is not interrupted.
package activity
