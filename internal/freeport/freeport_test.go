package freeport_test

import (
	"fmt"
	"net"
	"slices"
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

func TestSeveral(t *testing.T) {
	ports, err := freeport.Several(500) // chosen at random, some would be the same
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ports)
	if different := len(slices.Compact(slices.Clone(ports))); len(ports) != 500 || different != 500 {
		t.Fatalf("got %d ports, %d of them different, want 500", len(ports), different)
	}
}
