//go:build !race

package flows_test

// stride is how many messages lie between two crashes that are tried: all are.
const stride = 1
