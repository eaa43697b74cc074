package freeport_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/droverhq/drover/internal/freeport"
)

func TestLoopback(t *testing.T) {
	for range 20 {
		port, err := freeport.Loopback()
		if err != nil {
			t.Fatal(err)
		}
		if port < 10_000 || port > 29_999 {
			t.Fatalf("got port %d, want one that the kernel gives to no client", port)
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // the next one is another
	}
}
