// Package modules has "drover init", which makes a Go module with a workflow.
//
// The module is the example that package examples holds, under another path. Where it gets Drover
// from is told in origin.go.
package modules
