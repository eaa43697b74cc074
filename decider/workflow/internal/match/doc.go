// Package match compares what the code of a workflow asks for in a turn with what the history says
// that its decision has caused.
//
// Both are compared as sets, by kind and name: the order inside a decision is free, and so are
// inputs and durations. A refusal of the broker (such as ActivityScheduleFailed) stands for what
// was asked as well as what it refuses. A change marker that the code no longer asks for is left
// out: the code of both sides of a change may be deleted once no run needs the old one.
//
// A difference is told with both sides, and with the lines of code that ask ([Compare]). The
// package is pure.
package match
