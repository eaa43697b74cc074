package claims

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/internal/cutwire"
)

// A holder connects again and takes its claim anew while somebody who has just heard that it is gone is about to free what it had.
func TestHolderWhoIsBack(t *testing.T) {
	conn := embeddedtest.Dial(t)
	if _, err := conn.JetStream().CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b", Storage: jetstream.MemoryStorage}); err != nil {
		t.Fatal(err)
	}
	c, err := Open(conn, "b", Options{Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	write := func(nonce string, rev uint64) uint64 {
		body, err := json.Marshal(value{Node: "other", Nonce: nonce, Home: "home", Server: conn.NATS().ConnectedServerId()})
		if err == nil {
			rev, err = conn.KVUpdate(t.Context(), "b", "k", body, rev, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.note("k", body, rev, false)
		return rev
	}
	o := &c.watch.others
	first := write("first", 0)
	homes := o.neighbours(conn.Home(), conn.NATS().ConnectedServerId())
	keys, held := o.of(homes)
	second := write("second", first)
	c.bury(t.Context(), homes, keys, held)
	if _, rev, err := conn.KVGet(t.Context(), "b", "k"); err != nil || rev != second {
		t.Fatalf("got revision %d, %v, want the new claim's %d", rev, err, second)
	}
	keys, held = o.of(homes)
	c.bury(t.Context(), homes, keys, held)
	if _, _, err := conn.KVGet(t.Context(), "b", "k"); !errors.Is(err, post.ErrNotFound) {
		t.Fatalf("got %v, want %v", err, post.ErrNotFound)
	}
}

// The connection of the work is gone by the time that its claim is acknowledged: whoever has heard of that may hold the claim already.
func TestConnectionOfTheWorkIsLostWhileItsClaimIsTaken(t *testing.T) { // P-16
	synctest.Test(t, func(t *testing.T) {
		s := embeddedtest.Serve(t, embedded.Options{DontListen: true})
		wire := cutwire.New(s.Conn())
		dial := func(p nats.InProcessConnProvider) *post.Conn {
			return embeddedtest.Through(t, p)
		}
		conn, work := dial(wire), dial(s.Conn())
		if _, err := conn.JetStream().CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b", Storage: jetstream.MemoryStorage, LimitMarkerTTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
		c, err := Open(conn, "b", Options{Node: "n", TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		wire.Delay(10 * time.Second)
		wire.Judge(func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, "$KV.b.") {
				return cutwire.Late
			}
			return cutwire.Pass
		})
		taken := make(chan error)
		go func() {
			l, err := c.tryAcquire(t.Context(), Master, work)
			if err == nil {
				defer func() { _ = l.Release(t.Context()) }()
			}
			taken <- err
		}()
		synctest.Wait()
		work.Close()
		if err := <-taken; !errors.Is(err, ErrExpired) {
			t.Errorf("got %v, want that the claim is not held", err)
		}
	})
}
