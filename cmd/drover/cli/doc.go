// Package cli is what all commands of drover share: the invocation with its global flags and its
// connection ([App]), flags and their words, how documents, tables and errors are printed, the exit
// codes, the contexts of the nats command line, and what a shell completes.
package cli
