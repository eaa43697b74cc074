package natsconn

import (
	"errors"
	"fmt"
	"testing"

	"github.com/droverhq/drover/internal/virtual"
)

// Deletions go out without waiting for one another, each gets one outcome, and what was not meant stays.
func TestOutboxDeletes(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		stream(t, c)
		const n = 1000
		for i := range n {
			if _, err := c.PublishSync(t.Context(), fmt.Sprintf("s.%d", i), nil, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		b, err := c.NewOutbox(OutboxOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		outcomes := make(chan error, 2*n)
		for seq := uint64(1); seq <= n/2; seq++ {
			b.Delete("S", seq, func(err error) { outcomes <- err })
		}
		for range n / 2 {
			if err := <-outcomes; err != nil {
				t.Fatal(err)
			}
		}
		if first, last, err := c.StreamState(t.Context(), "S"); err != nil || first != n/2+1 || last != n {
			t.Fatalf("got %d to %d left (%v), want %d to %d", first, last, err, n/2+1, n)
		}
		for _, tc := range []struct {
			stream string
			seq    uint64
			want   error
		}{{"S", 1, ErrNotFound}, {"S", n + 1, ErrNotFound}, {"none", 1, ErrNoStream}, {"a.b", 1, ErrInvalid}} {
			b.Delete(tc.stream, tc.seq, func(err error) { outcomes <- err })
			if err := <-outcomes; !errors.Is(err, tc.want) {
				t.Errorf("message %d of stream %q: got %v, want %v", tc.seq, tc.stream, err, tc.want)
			}
		}
		for _, tc := range []struct {
			keep, first uint64
			want        error
		}{{0, n/2 + 1, ErrInvalid}, {1, n/2 + 1, ErrInvalid}, {n, n, nil}, {n, n, nil}, {n + 1, n + 1, nil}} {
			b.PurgeBelow("S", tc.keep, func(err error) { outcomes <- err })
			if err := <-outcomes; !errors.Is(err, tc.want) {
				t.Errorf("purge below %d: got %v, want %v", tc.keep, err, tc.want)
			}
			if first, _, err := c.StreamState(t.Context(), "S"); err != nil || first != tc.first {
				t.Errorf("purge below %d: got %d as the first (%v), want %d", tc.keep, first, err, tc.first)
			}
		}
		b.PurgeBelow("none", 2, func(err error) { outcomes <- err })
		if err := <-outcomes; !errors.Is(err, ErrNoStream) {
			t.Errorf("purge of no stream: got %v, want %v", err, ErrNoStream)
		}
		g, err := c.NewOutbox(OutboxOptions{Group: 10})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		g.Delete("S", n, func(err error) { outcomes <- err })
		if err := <-outcomes; !errors.Is(err, ErrInvalid) {
			t.Errorf("an outbox that groups: got %v, want %v", err, ErrInvalid)
		}
	})
}
