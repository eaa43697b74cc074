// Package ops is the vocabulary of the rooms below ops: schedules and their windows, always-on
// workflows, recycles of nodes, what is done once a period, and the log of operations. It has what
// they store, what they are asked and what they answer. Package schemas encodes it, and its
// invariants hold here too.
package ops
