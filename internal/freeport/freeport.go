// Package freeport finds ports for servers that tests and measurements start.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Loopback returns a port of 127.0.0.1 that nobody listens on and that a server can be started on
// again after a crash. It lies below the range from which the kernel takes the ports of clients, so
// that none of them gets it meanwhile. Nothing keeps it for the caller: another who asks may be
// given the same.
func Loopback() (int, error) {
	ports, err := Several(1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}

// Several returns n ports like that of [Loopback], no two of them the same.
func Several(n int) (ports []int, err error) {
	for tries := 0; len(ports) < n; tries++ {
		if tries == 1000*n {
			return nil, errors.New("no port of 127.0.0.1 from 10000 to 29999 is free")
		}
		port := 10_000 + rand.IntN(20_000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer l.Close() // not before all are found
		ports = append(ports, port)
	}
	return ports, nil
}
