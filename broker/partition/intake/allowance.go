package intake

import (
	"context"
	"sync"
)

const (
	// allowedMessages and allowedBytes bound what an owner has read of one log and not judged: what
	// is queued on the loop, and the signals that wait for a run to be loaded, for the end of the
	// inbox, or for their dead letters. One message is always allowed, however large.
	allowedMessages = 4096
	allowedBytes    = 16 << 20
)

// Allowance is how much of a log is in memory. Its reader waits if it is used up: what it does not
// read stays in the stream. It may be used from any goroutine.
type Allowance struct {
	mu              sync.Mutex
	messages, bytes int
	freed           chan struct{} // closed when something was given back; nil if nobody waits
}

// Take waits until a message of n bytes is allowed. It returns false if ctx has ended before.
func (a *Allowance) Take(ctx context.Context, n int) bool {
	for {
		freed := a.try(n)
		if freed == nil {
			return true
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		}
	}
}

// try takes what is allowed, or returns what is closed when it may be.
func (a *Allowance) try(n int) (freed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.messages > 0 && (a.messages >= allowedMessages || a.bytes+n > allowedBytes) {
		if a.freed == nil {
			a.freed = make(chan struct{})
		}
		return a.freed
	}
	a.messages++
	a.bytes += n
	return nil
}

// Give gives back what a message of n bytes has taken.
func (a *Allowance) Give(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.messages--
	a.bytes -= n
	if a.freed != nil {
		close(a.freed)
		a.freed = nil
	}
}
