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
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/internal/virtual"
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
	if _, _, err := conn.KVGet(t.Context(), "b", "k"); !errors.Is(err, natsconn.ErrNotFound) {
		t.Fatalf("got %v, want %v", err, natsconn.ErrNotFound)
	}
}

// The connection of the work is gone by the time that its claim is acknowledged: whoever has heard of that may hold the claim already.
func TestConnectionOfTheWorkIsLostWhileItsClaimIsTaken(t *testing.T) { // P-16
	virtual.Run(t, func(t *testing.T) {
		s := embeddedtest.Serve(t, embedded.Options{DontListen: true})
		wire := cutwire.New(s.Conn())
		dial := func(p nats.InProcessConnProvider) *natsconn.Conn {
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
		if _, err := c.tryAcquire(t.Context(), Alarms(0), work); !errors.Is(err, natsconn.ErrDisconnected) {
			t.Errorf("got %v, want %v", err, natsconn.ErrDisconnected)
		}
	})
}

// Each asks for those that follow it in the order of their subjects, so that all are asked for; and nodes are known to be gone before what
// they had is free.
func TestNeighbours(t *testing.T) {
	c, err := Open(new(natsconn.Conn), "b", Options{Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	o := &c.watch.others
	note := func(key, home, server string) {
		body, err := json.Marshal(value{Node: home, Nonce: "x", Home: home, Server: server})
		if err != nil {
			t.Fatal(err)
		}
		c.note(key, body, 1, false)
	}
	for key, home := range map[string]string{
		"alarms.0": "h1", "partition.0": "h1", "broker.h1": "h1", "timers.h1": "h1", "partition.1": "h3", "broker.h3": "h3", "alarms.1": "h7",
	} {
		note(key, home, "s")
	}
	note("partition.9", "h5", "another")
	for own, want := range map[string]string{"h0": "h1 h3 h7", "h2": "h3 h7 h1", "h5": "h7 h1 h3", "h9": "h1 h3 h7"} {
		if got := strings.Join(o.neighbours(own, "s"), " "); got != want {
			t.Errorf("%s asks for %s, want %s", own, got, want)
		}
	}
	keys, held := o.of([]string{"h3", "h1"})
	if got, want := strings.Join(keys, " "), "broker.h1 broker.h3 timers.h1 alarms.0 partition.0 partition.1"; got != want || len(held) != len(keys) {
		t.Errorf("got %s (%d), want %s", got, len(held), want)
	}
	for i := range 2 * mostAsked {
		note(Partition(100+i), "i"+string(rune('A'+i)), "s")
	}
	if n := len(o.neighbours("h0", "s")); n != mostAsked {
		t.Errorf("%d are asked for, want %d", n, mostAsked)
	}
}
