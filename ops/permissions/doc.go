// Package permissions says which NATS subjects each role of Drover needs, and no more: what "drover
// auth template" prints.
//
// Invariants:
//
//   - Every subject comes from package subject or from the table of JetStream's own API in this
//     package, so that a changed layout changes the templates with it.
//   - The roles that anybody may be given (activity, decider, signaler, client, viewer, operator)
//     can make no consumer, purge or delete nothing, and write no stream but where the table of
//     this package says so. A consumer that delivers to a subject of one's choice is as good as the
//     right to publish there.
//   - The roles of servers (broker, timer, ops, server) are trusted with their namespace: whoever
//     may write one key of a bucket can wipe it, because buckets allow rollup.
//   - Acknowledgements are allowed in both forms of the reply subject, the second one with its
//     first token fixed. With a wildcard there, an acknowledgement of the first form for any other
//     list would pass, the name of one's own list standing where the number of deliveries belongs.
//
// It asks no server. The command line calls it, and tests connect with what it says.
package permissions
