// Package freeport finds ports for servers that tests and measurements start.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Loopback returns a port of 127.0.0.1 that nobody listens on and that a server can be started on again after a crash. It lies below the
// range from which the kernel takes the ports of clients, so that none of them gets it meanwhile. Nothing keeps it for the caller: another who
// asks may be given the same.
func Loopback() (int, error) {
	for range 1000 {
		port := 10_000 + rand.IntN(20_000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no port of 127.0.0.1 from 10000 to 29999 is free")
}
