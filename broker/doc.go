// Package broker is the workflow service of a namespace: it takes its share of the partitions,
// serves the API, and hands each request to the owner of the workflow's partition, here or
// elsewhere. Programs embed it through package server; users' programs import the root package.
//
// What owns a partition is package partition. Here are only the claims (broker.go), the API that is
// the same whoever owns what (api.go, and a file for each noun), and the refusal of requests while
// there is no quorum (quorum.go). Requests that need no owner are answered here: lists of runs,
// task lists, locks, dead letters, types, payloads.
package broker
