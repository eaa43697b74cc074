package natsconn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

const (
	// BulkBytes is from how much on a message is to wait for its turn; see [Conn.Bulk].
	BulkBytes = 32 << 10
	// bulkFirst is how many turns there are at once until some have been answered, bulkMost how
	// many there ever are.
	bulkFirst, bulkMost = 2, 64
	// bulkQuick and bulkSlow are how much longer than the quickest one a turn takes where the link
	// carries more, and where it has too much to do. The second is well below what anybody waits
	// for an answer, and below what the server takes to answer a ping.
	bulkQuick, bulkSlow = 500 * time.Millisecond, 2 * time.Second
)

// bulk says how many large messages of a connection may be on their way at once: as many as the
// link to the server carries. Those beyond that would only lie before the link, with all that is
// sent after them: nothing would be answered in time, neither they nor pings, the connection would
// be given up for it, and everything would be sent again, without an end.
type bulk struct {
	mu      sync.Mutex
	most    int           // how many may be on their way; 0 at first
	under   int           // how many are
	best    time.Duration // of the quickest that was answered; 0 for none
	cut     time.Time     // when most was made less
	moved   time.Time     // when one was last answered
	waiting []chan struct{}
}

// Bulk waits for a turn to send so many bytes, or to ask for such an answer, and returns what is to
// be called once with the outcome: [context.Canceled] if there is none. What has less than
// [BulkBytes] goes at once. Whoever has no turn sends nothing, so that the time that it waits for
// an answer is that of the link. It waits for as long as others are answered, and for patience
// where none is, which is [ErrTimeout]; 0 waits until ctx ends. moved is how much of the wait
// others were answered in.
func (c *Conn) Bulk(
	ctx context.Context, size int, patience time.Duration,
) (done func(error), moved time.Duration, err error) {
	if size < BulkBytes {
		return func(error) {}, 0, nil
	}
	b, asked := &c.bulk, time.Now()
	if err := b.enter(ctx, asked, patience); err != nil {
		return nil, 0, fmt.Errorf("%w: the turn to send did not come", err)
	}
	began := time.Now()
	return func(err error) { b.leave(began, err) }, max(b.lastMoved().Sub(asked), 0), nil
}

func (b *bulk) lastMoved() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.moved
}

func (b *bulk) enter(ctx context.Context, asked time.Time, patience time.Duration) error {
	b.mu.Lock()
	if b.most == 0 {
		b.most = bulkFirst
	}
	if b.under < b.most {
		b.under++
		b.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	b.waiting = append(b.waiting, turn)
	b.mu.Unlock()
	err := b.await(ctx, turn, asked, patience)
	if err == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, turn); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	} else { // it came meanwhile
		b.under--
		b.next()
	}
	return err
}

// await waits for a turn while the others move.
func (b *bulk) await(
	ctx context.Context, turn <-chan struct{}, since time.Time, patience time.Duration,
) error {
	if patience <= 0 {
		patience = math.MaxInt64
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case <-turn:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		if moved := b.lastMoved(); moved.After(since) {
			since = moved
		}
		left := patience - time.Since(since)
		if left <= 0 {
			return ErrTimeout
		}
		timer.Reset(left)
	}
}

func (b *bulk) leave(began time.Time, err error) {
	took := time.Since(began)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.under--
	late, best := errors.Is(err, ErrTimeout), b.best // 0 says nothing of the first one
	if !Transient(err) && !errors.Is(err, context.Canceled) {
		b.moved = time.Now()
	}
	if err == nil && (b.best == 0 || took < b.best) {
		b.best = took
	}
	switch {
	case late || err == nil && took > b.best+bulkSlow:
		if began.After(b.cut) { // else it was sent when there were more
			b.most, b.cut = max(b.most/2, 1), time.Now()
		}
	case err == nil && took < best+bulkQuick:
		b.most = min(b.most+1, bulkMost)
	}
	b.next()
}

// next lets those in who may.
func (b *bulk) next() {
	for b.under < b.most && len(b.waiting) > 0 {
		b.under++
		close(b.waiting[0])
		b.waiting = slices.Delete(b.waiting, 0, 1)
	}
}
