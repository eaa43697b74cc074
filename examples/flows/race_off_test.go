//go:build !race

package flows_test

// stride is how many messages lie between two crashes that are tried: all are.
const stride = 1

// between is the time between two tries for a lock: that of the file.
const between = "10ms"
