// Package recycle restarts the roles of the nodes of a deployment once a day, or when somebody asks
// for it: one node after the other, announced before.
//
// A deployment is the nodes that have one home namespace. What is wanted is the key recycle in the
// bucket of schedules of that namespace, and where a recycle stands is the key recycle.state: the
// last notice. A [Keeper] runs beside the master of the namespace: it announces, says when all is
// done, and answers the verbs recycleSet, recycleNow and recycleShow. A [Runner] runs in each node,
// whatever its roles: it restarts them when it is the node's turn.
//
// Invariants:
//
//   - A node begins its turn only in a recycle that was announced, at its time or later, and only
//     if its roles began before the slot. So each node has one turn in a recycle, and one that was
//     started anew meanwhile has none.
//   - One node at a time has its turn: it holds the claim recycle. A node that dies loses the
//     claim, and the next one goes on. Between two turns lies the stagger, counted from the last
//     notice.
//   - A notice is stored by compare-and-set before it is published. Two masters announce a slot
//     once.
//   - Nothing waits for a recycle: a node whose turn comes late has it late.
package recycle
