// Package decider is the raw API for workflow authors and the worker that answers decision tasks.
//
// A decider reads what has happened to a run and says what is to happen next. It is asked again
// whenever something it should know of has happened:
//
//	w := decider.New(conn, nil)
//	w.Register("order", decider.Func(func(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
//		v, err := t.View(ctx)
//		if err != nil {
//			return nil, err
//		}
//		switch status, receipt, reason := v.Activity("charge"); {
//		case status == 0:
//			return []schemas.Decision{decider.Schedule("charge", "charge-card", v.Input(), decider.List("PCI"))}, nil
//		case !status.Closed():
//			return nil, nil
//		case status != decider.ActivitySucceeded:
//			return []schemas.Decision{decider.Fail(reason, nil)}, nil
//		default:
//			return []schemas.Decision{decider.Complete(receipt)}, nil
//		}
//	}))
//	err := w.Run(ctx)
//
// A [Worker] needs the right to subscribe to the decide subjects of its types and what is below
// them, to request api.history, api.download, api.upload and what is below it, and to publish
// announcements and replies. It writes no stream and holds nothing durable: any worker may be
// killed at any time, and another one answers the run's next task. A worker in the broker's own
// process is the same worker on an in-process connection.
//
// Invariants:
//
//   - A decider never sees an event after the DeciderStarted of its task, even if the history has
//     more by now.
//   - A cached history is used only if the broker proves that the last committed reply of the run
//     is the one that this worker sent (P-11). Otherwise the history is read anew.
//   - A task gets at most one reply. A panic, an error or a timeout of a decider is a reply too, so
//     that the broker need not wait for its own timeout. A reply that comes too late is refused by
//     its token and does no harm.
//   - No task of a worker begins beyond Options.Concurrency; one that waits in [Task.Rest] does not
//     count. Those above it are held back in a queue; the broker's deadline runs on meanwhile, and a
//     task whose deadline has passed in the queue is dropped.
//
// [Task], [View] and the constructors of decisions are for authors. They need no connection; see
// [NewTask].
package decider
