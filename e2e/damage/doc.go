// Package damage tests what is left of a store when something happens to its disk: the power is
// cut, it is full, a bit flips, a block or an index is missing.
//
// It holds tests only. The server is the binary, on a disk of its own: that of package power, a
// small tmpfs, or a plain folder. Clients, deciders and activity workers are in the test's process,
// as on another machine: they live on.
//
// Every test tells what it asserts in docs/learn/reliability.md, and prints its seed. -cuts N asks
// for more power cuts, -cuts.seed repeats a run.
package damage
