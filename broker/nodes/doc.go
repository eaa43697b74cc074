// Package nodes keeps the register of running nodes: one record for each process of "drover
// server", in the bucket drover-nodes, which all namespaces of an account share.
//
// A node joins under a name, writes its record again and again while it lives, and takes it away
// when it ends properly. The master judges who has been silent for too long; people and the command
// line read the list.
//
// Servers use it, and whoever shows or drains nodes.
//
// Invariants:
//   - Every write is a compare-and-set on the revision that was seen. So a node that comes back
//     late never writes over one that has its name now, and the master never marks a node that has
//     just been heard of.
//   - Silence is judged by the times at which the server stored the records, and by an estimate of
//     its clock that is never ahead. What a node says about its own clock is shown and decides
//     nothing.
//   - A name that was given is taken as it is, whatever record it has: who restarts a crashed
//     server must not have to wait. A record of another start that is found then is that of an
//     earlier self, which did not end properly.
//   - A record protects nothing. Partitions are kept apart by claims and fences alone.
//
// Considered and left: a claim with a TTL for each node. The server would take the record of a dead
// node away, and nobody could tell a crash from a clean stop.
package nodes
