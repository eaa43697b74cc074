package intake

import (
	"context"
	"testing"
)

// No more than the allowance is read, but for one message that is larger. (E8)
func TestAllowanceIsBounded(t *testing.T) {
	var a Allowance
	n := 0
	for ; n < 10*allowedMessages && a.try(1) == nil; n++ {
	}
	if n != allowedMessages {
		t.Errorf("%d were read, want %d", n, allowedMessages)
	}
	for range n {
		a.Give(1)
	}
	for n = 0; n < 100 && a.try(allowedBytes/8) == nil; n++ {
	}
	if n != 8 {
		t.Errorf("%d large ones were read, want 8", n)
	}
	for range n {
		a.Give(allowedBytes / 8)
	}
	if a.try(allowedBytes+1) != nil {
		t.Error("one that is larger than all that is allowed is never read")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if a.Take(ended, 1) {
		t.Error("one more was read")
	}
	took := make(chan bool)
	go func() { took <- a.Take(t.Context(), 1) }()
	a.Give(allowedBytes + 1)
	if !<-took {
		t.Error("none is read when there is room again")
	}
}
