// Package query is the language in which one asks for workflows.
//
// It is pure: what is a workflow here is a [Row], and the time comes in as an argument.
package query
