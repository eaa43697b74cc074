// Package flow is the decider of flows: workflows that are written in YAML.
//
//	definition, err := flow.Parse("order.yaml", text, nil)   checked as a whole, with file, line and column
//	w.Register("order", flow.New(store, nil))                any number of workers; store has the definitions
//
// The workflow type is the name of the flow. A run is started with a map as its input, as any other
// run; the version of the flow is chosen at its first decision and kept to its end, by its children
// too. Parts of a flow that are runs of their own are children of the same type, whose input says
// which part they are.
//
// The decider keeps the state of a run in the decision context and reads no history: it turns the
// window of events into inputs of package machine, and the actions that come of them into
// decisions.
//
// # What stands in a history
//
// The input of a run that is a part of a flow, or repeats another run, is a map with the single key
// $flow: version, part, input, vars, reducing, idempotent_all, replay with state, from and force
// (see [Decider.Replay]), and continue with state and inputs where a full history goes on in a new
// run. The result of a part is such a map with output and reduced, the details of its failure one
// with failure and state. Activities have ids such as 2#1: the ref of the step, how often it has
// started, and after a point how often that instance was resumed; children have these after the run
// that asks for them. Lines of the log are markers of the name log with level, text and category.
//
// # Invariants
//
//   - Any worker may answer any task. What is kept between two decisions is compiled definitions,
//     which never change, and the state of a run, which is used only if the broker proves that the
//     last committed answer is the one that left it (P-11).
//   - The time of a run is that of the events, so that a decision that is made twice is made at the
//     same time.
package flow
