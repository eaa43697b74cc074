// Package flow is the decider of flows: workflows that are written in YAML.
//
//	definition, err := flow.Parse("order.yaml", text, nil)   checked as a whole, with file, line and column
//	w.Register("order", flow.New(store, nil))                any number of workers; store has the definitions
//
// The workflow type is the name of the flow. A run is started with a map as its input, as any other run; the version of the flow
// is chosen at its first decision and kept to its end, by its children too. Parts of a flow that are runs of their own are children of
// the same type, whose input says which part they are.
//
// The decider keeps the state of a run in the decision context and reads no history: it turns the window of events into inputs of
// package machine, and the actions that come of them into decisions.
//
// Invariants:
//
//   - Any worker may answer any task. What is kept between two decisions is compiled definitions, which never change, and the state
//     of a run, which is used only if the broker proves that the last committed answer is the one that left it (P-11).
//   - The time of a run is that of the events, so that a decision that is made twice is made at the same time.
//   - What the broker of this release does not carry out is never decided: see [Supported].
package flow
