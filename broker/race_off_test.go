//go:build !race

package broker_test

const fewer = 1
