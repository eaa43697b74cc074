// Package breath lets those who look at whole streams leave most of the machine to others: a look rests four times as long as it reads, and
// so takes a fifth of a core and not all.
//
// It is for looks that nobody waits for: the audit, and the retention's. What reads as fast as it can holds up what the same server
// is asked meanwhile: 100,000 alarms take it half a second.
package breath

import (
	"context"
	"time"
)

const (
	// every and everyBytes are how much is read between two rests.
	every      = 1024
	everyBytes = 1 << 20
	// share is how many times as long as it has read a look rests, and longest the most.
	share   = 4
	longest = 200 * time.Millisecond
)

// Breath is that of one look. The zero value is ready; it is for one goroutine.
type Breath struct {
	messages, bytes int
	began           time.Time
}

// After is called after each message, with the bytes that were read of it, and rests now and then. The error is why ctx ended.
func (b *Breath) After(ctx context.Context, size int) error {
	if b.began.IsZero() {
		b.began = time.Now()
	}
	if b.messages, b.bytes = b.messages+1, b.bytes+size; b.messages < every && b.bytes < everyBytes {
		return nil
	}
	t := time.NewTimer(min(share*time.Since(b.began), longest))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
	}
	*b = Breath{began: time.Now()}
	return nil
}
