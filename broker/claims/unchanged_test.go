package claims_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
)

// A holder dies with the leader of the bucket, whose clock was an hour ahead of that of the next leader. Its claim is over when nobody has
// renewed it for as long as it lasts, not an hour later.
func TestClaimStampedByAClockThatWasAhead(t *testing.T) { // P-16
	bubble(t, func(t *testing.T, s *embedded.Server) {
		dead, b := join(t, s, claims.Options{Node: "dead"}), join(t, s, claims.Options{Node: "b"})
		b.wire.ahead.Store(true)
		rev := uint64(0)
		write := func() {
			t.Helper()
			value := fmt.Sprintf(`{"node":"dead","nonce":"x-1","since":"2000-01-01T01:00:00Z","deadline":"2000-01-01T01:00:10Z","ttl":%v}`, ttl.Seconds())
			var err error
			if rev, err = dead.conn.KVUpdate(t.Context(), bucket, key, []byte(value), rev, 0); err != nil { // the server does not remove it
				t.Fatal(err)
			}
		}
		write()
		var last time.Time
		for began, renewed := time.Now(), false; ; time.Sleep(time.Second) {
			all, err := b.List(t.Context())
			if err != nil || len(all) != 1 {
				t.Fatalf("got %+v, %v, want one claim", all, err)
			}
			l, err := b.TryAcquire(t.Context(), key)
			if took := time.Since(last); err == nil {
				t.Cleanup(func() { _ = l.Release(t.Context()) })
				if took < ttl || took > ttl+2*time.Second || !all[0].Expired {
					t.Errorf("taken %v after the last write, listed as %+v, want %v", took, all[0], ttl)
				}
				return
			}
			if !errors.Is(err, claims.ErrHeld) || all[0].Expired {
				t.Fatalf("got %v, listed as %+v, want it to be held", err, all[0])
			}
			if !renewed && time.Since(began) >= ttl/2 {
				write()
				renewed, last = true, time.Now()
			}
			if time.Since(began) > 3*ttl {
				t.Fatal("it is held for ever")
			}
		}
	})
}
