package claims_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
)

// A bucket that is gone is told once in a while, not at each look.
func TestShareComplainsOnceInAWhile(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a := join(t, s, claims.Options{Node: "a"})
		ctx, cancel := context.WithCancel(t.Context())
		complaints := 0
		var done sync.WaitGroup
		done.Go(func() {
			a.Share(claims.RoleTimers).Watch(ctx, ctx, func() {}, func(error) { complaints++ })
		})
		time.Sleep(3 * time.Second)
		if err := a.conn.JetStream().DeleteStream(ctx, "KV_"+bucket); err != nil {
			t.Fatal(err)
		}
		time.Sleep(90 * time.Second)
		cancel()
		done.Wait()
		if complaints != 2 {
			t.Errorf("got %d complaints in a minute and a half, want 2", complaints)
		}
	})
}
