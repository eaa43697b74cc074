// Package workflow runs workflows that are written as ordinary Go functions.
//
//	func process(ctx workflow.Context, o Order) (Receipt, error) {
//		r, err := workflow.Call(ctx, Charge, o.Payment)
//		if errors.Is(err, Declined) {
//			return Receipt{}, err
//		}
//		if err != nil {
//			return Receipt{}, err
//		}
//		_, err = workflow.Call(ctx, Ship, o.Items)
//		return r, err
//	}
//
//	w := decider.New(conn, nil)
//	workflow.Implement(w, Process, process, nil)
//	err := w.Run(ctx)
//
// What a function asks for ([Call], [Start], [Sleep], …) is written into the history of its run. A
// function that waits costs a goroutine in the worker that has it in memory, and nothing else: any
// worker of the type may go on with it, by calling it again and giving it what the history has.
// So the function must do the same each time: it may look at its input, at what the functions of
// this package return, and at nothing else. Whoever needs a clock, a random number, a file or the
// network takes [Now], [Rand], [Do], or an activity.
//
// Invariants:
//
//   - Code sees the events of its history one by one, in their order. It makes no difference how
//     they fell into decisions, or whether the run was in memory. One thing does not wait for its
//     event: [Channel.TryReceive], [Channel.Len] and a [Select] with a [Default] find every signal
//     that the decision has seen. So code that looks before it returns loses none.
//   - A decision that does not agree with the history is never sent: it fails with both sides
//     beside each other, and the run waits for code that agrees.
//   - A mistake of the program (a panic, a value that has no JSON form, a wrong history) fails the
//     decision, which is asked for again, and never the run.
//   - When a scope is canceled, what is open in it is asked to end, and its futures are ready when
//     it has ended.
//
// [Context] is no context.Context on purpose: nothing of the outside can be waited for with it.
package workflow
