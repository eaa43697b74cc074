//go:build race

package broker_test

// fewer divides what a test moves by the megabyte: the race detector makes large messages ten times as slow.
const fewer = 10
