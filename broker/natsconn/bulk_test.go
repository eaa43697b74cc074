package natsconn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/virtual"
)

// Where the link carries one large message a second, no more are on their way at once than can be answered soon; where it carries all of
// them, they go side by side.
func TestBulkGoesInTurns(t *testing.T) {
	for _, tc := range []struct {
		name                string
		delay, each, within time.Duration
		most                int32
	}{
		{"slow", 150 * time.Millisecond, time.Second, 101 * time.Second, 4},
		{"far", 150 * time.Millisecond, time.Millisecond, 2 * time.Second, bulkMost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				c, link := &Conn{}, make(chan struct{}, 1)
				var under, most atomic.Int32
				var wg sync.WaitGroup
				began := time.Now()
				for range 100 {
					wg.Go(func() {
						done, _, err := c.Bulk(t.Context(), BulkBytes, 5*time.Second) // which is for silence
						if err != nil {
							t.Error(err)
							return
						}
						if n := under.Add(1); n > most.Load() {
							most.Store(n)
						}
						link <- struct{}{}
						time.Sleep(tc.each)
						<-link
						time.Sleep(tc.delay)
						under.Add(-1)
						done(nil)
					})
				}
				wg.Wait()
				if got := most.Load(); got > tc.most {
					t.Errorf("got %d on their way at once, want %d at most", got, tc.most)
				}
				if took := time.Since(began); took > tc.within {
					t.Errorf("took %v, want %v at most", took, tc.within)
				}
			})
		})
	}
}

// What was not answered in time was too much; whoever gives up waiting leaves the turn to the next.
func TestBulkYields(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, late := &Conn{}, fmt.Errorf("publish: %w", ErrTimeout)
		var dones []func(error)
		for range bulkFirst {
			done, _, err := c.Bulk(t.Context(), BulkBytes, 0)
			if err != nil {
				t.Fatal(err)
			}
			dones = append(dones, done)
		}
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := c.Bulk(ctx, BulkBytes, 0); err == nil {
			t.Fatal("got a turn beyond the first")
		}
		if _, _, err := c.Bulk(t.Context(), BulkBytes, time.Second); !errors.Is(err, ErrTimeout) {
			t.Fatalf("got %v while nobody is answered, want the end of the patience", err)
		}
		for _, done := range dones {
			done(late)
		}
		if c.bulk.most != 1 || c.bulk.under != 0 || len(c.bulk.waiting) != 0 {
			t.Errorf("got %d turns, %d taken, %d waiting, want 1, 0, 0", c.bulk.most, c.bulk.under, len(c.bulk.waiting))
		}
	})
}
