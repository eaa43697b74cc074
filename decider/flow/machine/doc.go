// Package machine runs flows: it is the pure function from a state and what has come in to the next
// state and what is to be done.
//
//	flow, err := machine.Compile(definition)             once for each version of a flow
//	state, actions, err := machine.Start(program, begin, …) the first decision of a run
//	actions, err := machine.Step(program, state, inputs, …) every other decision
//
// A [Program] is one definition that is a run's own: the root of a flow, what a workflow or foreach
// step runs, or a registered step type. A [run.State] is one run of it, as plain data. An [Action]
// is something that is to be done outside, and an [Input] is what came of it.
//
// Invariants:
//
//   - There is no clock, dice, file, network or goroutine here: time and random numbers are
//     arguments. The same state and the same inputs give the same result, whether the state was
//     kept in memory or written and read in between.
//   - The size of a state is bounded by the definition and its values, and so is the cost of a
//     decision, however many steps have run: of each step there is a count, its last instance and
//     the steps that were seen before it, and nothing else.
//   - Each action that is answered has an id made of the step's ref, how often the step has started
//     and how often that instance was resumed. An answer to anything but what the run waits for now
//     is ignored.
//   - A run runs until it waits or ends. One that runs more than [MaxIdle] steps without a wait has
//     failed.
//   - A value in a state is never changed in place: instances share the variables that they began
//     with.
//
// The adapter in package flow turns events into inputs and actions into decisions; nobody else
// calls this package.
package machine
