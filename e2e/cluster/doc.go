// Package cluster tests three nodes of the built binary that form one JetStream cluster, as
// processes: kill -9, planned stops, leaders that step down, and a network that is cut.
//
// It holds tests only. They share one cluster, which the first of them starts and which each leaves
// whole, so that they run in any order and one after the other. As root each node lives in a
// network namespace of its own, on a bridge: a cut is a link that goes down, which is silent, as a
// pulled cable is. That is why these tests need no proxy between the servers: nodes tell each other
// addresses, and would find their way around one. Without root the nodes share the loopback, and
// the tests of a cut network are skipped.
//
// Rules that every test keeps:
//   - It puts a load on the cluster and counts acknowledgements: what was acknowledged has ended
//     once, as it should; a signal that was acknowledged is in the history once; one that was
//     refused is there once at most.
//   - It ends by checking every history with "drover verify".
//   - It prints the slowest call that a client has seen.
package cluster
