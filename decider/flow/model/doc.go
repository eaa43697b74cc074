// Package model turns the YAML text of a flow into a checked [Definition], the tree that the
// interpreter walks.
//
// [Parse] reads a text once; nobody looks at YAML afterwards. What it returns is plain data:
// shorthand has been split into inputs, types are known, targets of jumps exist, every step has a
// [Step.Ref] that does not change while the text does not. [Definition.Encode] writes the canonical
// JSON that deploy stores, [Decode] reads it back, [Definition.Version] names its content.
//
// Invariants:
//
//   - An error says file, line, column and the way out, and shows the place. As many as 20 are
//     found in one pass.
//   - A text that is hostile ends in an error and not in a long wait: bytes, tokens, depth,
//     expansion of aliases and the number of steps are bounded before they are worked on. No input
//     panics.
//   - A definition is complete: the registered step types that it uses are in [Definition.Types],
//     as they were when it was parsed. So a run does not change when somebody registers a type
//     anew.
//   - Nothing here evaluates an expression. Who parses says in [Options.Checks] how the languages
//     within the texts are checked; what holds ${...} where a name or a duration may stand is
//     checked when it runs.
//
// It is pure: no clock, file, network, environment or logger. The deployer, the interpreter and
// editors' tools call it.
package model
