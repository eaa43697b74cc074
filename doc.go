// Package drover is the front door for programs that use Drover: connect, start a workflow, signal
// it, wait for its result, read its history, and run deciders and activities on the same
// connection.
//
//	c, err := drover.Connect(ctx, nil)
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	run, err := c.Start(ctx, "order", order, &drover.StartOptions{ID: "order-17"})
//	if err != nil {
//		return err
//	}
//	var receipt Receipt
//	err = run.Result(ctx, &receipt)
//
// Everything here is a request to the service API of a namespace, which any number of servers
// answer together; this package links neither the NATS server nor the engine. It is for users'
// programs and for cmd/drover; no package of the engine imports it.
//
// Invariants:
//
//   - A request that nobody answered is asked again, also one that writes. That is safe because
//     every write carries ids that were minted before its first try: a repeat gets the first answer
//     and changes nothing.
//   - No call is silent for ever: it ends with an answer, with its ctx, or after [Options.Timeout]
//     without any answer.
//   - Code of yours that the workers call may panic. That of a decider or an activity is a failure
//     which the run is told of, that of a [decider.Source] ends its worker with an error, that of
//     an Observer is logged. A Logger must not: there is nobody left to tell, and the process ends.
//   - Every error of a call is an [*Error]. It names the operation, the execution, a code and the
//     way out, and matches the sentinel of its code by errors.Is. A workflow that did not complete
//     is a [*WorkflowError] instead.
package drover
