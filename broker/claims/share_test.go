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
		if _, err := a.conn.KVCreate(t.Context(), bucket, "timers.old", []byte(`{"node":"old","nonce":"x","ttl":1}`), 0); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		complaints := 0
		share := a.Share(claims.RoleTimers)
		var done sync.WaitGroup
		done.Go(func() {
			share.Watch(ctx, ctx, func() {}, func(error) { complaints++ })
		})
		until(t, "another is there", time.Second, func() bool { return !share.Alone() })
		time.Sleep(3 * time.Second)
		if !share.Alone() {
			t.Error("a claim that has expired, and stands, counts as a node")
		}
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

// Who comes and who leaves is known at once, long before the next look at the list.
func TestShareIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		const look = time.Minute
		serve := func(node string) (*claims.Share, context.CancelFunc, <-chan struct{}) {
			p := join(t, s, claims.Options{Node: node, LookEvery: look})
			ctx, stop := context.WithCancel(t.Context())
			leaving, leave := context.WithCancel(ctx)
			left := make(chan struct{})
			share := p.Share(claims.RoleBroker)
			var done sync.WaitGroup
			done.Go(func() {
				share.Watch(ctx, leaving, func() { close(left) }, func(err error) { t.Errorf("%s: %v", node, err) })
			})
			t.Cleanup(func() {
				stop()
				done.Wait()
			})
			return share, leave, left
		}
		a, _, _ := serve("a")
		_, leave, left := serve("b")
		theirs := func() (n int) {
			for p := range 16 {
				if !a.Mine(p) {
					n++
				}
			}
			return n
		}
		until(t, "a leaves b its share", time.Second, func() bool { n := theirs(); return !a.Alone() && n > 0 && n < 16 })
		leave()
		<-left
		until(t, "a is alone", time.Second, a.Alone)
		if n := theirs(); n > 0 {
			t.Errorf("a leaves %d partitions to who has left", n)
		}
		_, _, _ = serve("b")
		until(t, "a sees b again", time.Second, func() bool { return !a.Alone() })
	})
}
