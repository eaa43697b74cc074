package claims

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/internal/virtual"
)

// twoOnOneBucket runs fn with two nodes, the first of them after a wire.
func twoOnOneBucket(t *testing.T, fn func(t *testing.T, a, b *Claims, wire *cutwire.Wire)) {
	t.Helper()
	virtual.Run(t, func(t *testing.T) {
		s := embeddedtest.Serve(t, embedded.Options{DontListen: true})
		wire := cutwire.New(s.Conn())
		conns := []*natsconn.Conn{embeddedtest.Through(t, wire), embeddedtest.Through(t, s.Conn())}
		_, err := conns[1].JetStream().CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b", Storage: jetstream.MemoryStorage, LimitMarkerTTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var nodes []*Claims
		for i, conn := range conns {
			c, err := Open(conn, "b", Options{Node: string(rune('a' + i))})
			if err != nil {
				t.Fatal(err)
			}
			nodes = append(nodes, c)
		}
		fn(t, nodes[0], nodes[1], wire)
	})
}

// writes judges what is written to the bucket.
func writes(wire *cutwire.Wire, v cutwire.Verdict) {
	wire.Judge(func(subj string, _ []byte) cutwire.Verdict {
		if strings.HasPrefix(subj, "$KV.b.") {
			return v
		}
		return cutwire.Pass
	})
}

// Whoever does not learn what has become of its claim, and finds that of another, has none.
func TestLostTakeFindsAnother(t *testing.T) { // P-16
	twoOnOneBucket(t, func(t *testing.T, a, b *Claims, wire *cutwire.Wire) {
		writes(wire, cutwire.Swallow)
		taken := make(chan error)
		go func() {
			l, err := a.TryAcquire(t.Context(), Master)
			if err == nil {
				defer func() { _ = l.Release(t.Context()) }()
			}
			taken <- err
		}()
		synctest.Wait()
		l, err := b.TryAcquire(t.Context(), Master)
		if err != nil {
			t.Fatal(err)
		}
		if err := <-taken; err == nil || errors.Is(err, ErrHeld) {
			t.Errorf("got %v, want that it is not known", err)
		}
		if !l.Valid() {
			t.Error(l.Err())
		}
		wire.Judge(nil)
		if _, err := a.TryAcquire(t.Context(), Master); !errors.Is(err, ErrHeld) {
			t.Errorf("got %v, want %v", err, ErrHeld)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A claim that was given back without an answer is free, and so it is told.
func TestReleaseWithoutAnAnswer(t *testing.T) {
	twoOnOneBucket(t, func(t *testing.T, a, b *Claims, wire *cutwire.Wire) {
		l, err := a.TryAcquire(t.Context(), Master)
		if err != nil {
			t.Fatal(err)
		}
		writes(wire, cutwire.Unanswered)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Release(ctx); err != nil {
			t.Error(err)
		}
		if e, err := b.read(t.Context(), Master); err != nil || !e.absent {
			t.Errorf("got %+v, %v; want that the key is free", e, err)
		}
	})
}

// What cannot be done without the bucket says so.
func TestBucketThatIsGone(t *testing.T) {
	twoOnOneBucket(t, func(t *testing.T, a, _ *Claims, _ *cutwire.Wire) {
		l, err := a.TryAcquire(t.Context(), Master)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.conn.JetStream().DeleteKeyValue(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		const way = `"drover namespace create"`
		_, listErr := a.List(t.Context())
		for what, err := range map[string]error{"List": listErr, "Confirm": a.Confirm(t.Context(), Info{Key: Master})} {
			if !errors.Is(err, natsconn.ErrNoStream) || !strings.Contains(err.Error(), way) {
				t.Errorf("%s: got %v, want %v and the way out", what, err, natsconn.ErrNoStream)
			}
		}
		for what, err := range map[string]error{"Evict": a.Evict(t.Context(), Info{Key: Master, Revision: 1, Expired: true}), "Release": l.Release(t.Context())} {
			if !errors.Is(err, natsconn.ErrNoStream) {
				t.Errorf("%s: got %v, want %v", what, err, natsconn.ErrNoStream)
			}
		}
		a.conn.Close()
		if _, err := a.List(t.Context()); err == nil || strings.Contains(err.Error(), way) {
			t.Errorf("List without a connection: got %v, want an error that does not blame the bucket", err)
		}
	})
}

// A claim of the dead whose deletion was lost is deleted with the next look.
func TestBuryAgain(t *testing.T) {
	twoOnOneBucket(t, func(t *testing.T, a, b *Claims, wire *cutwire.Wire) {
		defer a.Watch("none", func(string, bool) {})() // it follows the bucket
		if _, err := b.TryAcquire(t.Context(), Master); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		lost := 0
		wire.Judge(func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, "$KV.b.") && lost == 0 {
				lost++
				return cutwire.Swallow
			}
			return cutwire.Pass
		})
		b.conn.Close()
		time.Sleep(a.opts.TTL/3 + 2*a.opts.LookEvery)
		if e, err := a.read(t.Context(), Master); err != nil || !e.absent || lost != 1 {
			t.Errorf("got %+v, %v after %d failures; want that the key is free", e, err, lost)
		}
	})
}

func TestLostTo(t *testing.T) {
	for want, e := range map[string]*entry{
		"its key was deleted":                       {absent: true},
		"its key was overwritten by something else": {malformed: true},
		"node b took it (number 7)":                 {value: value{Node: "b", Nonce: "x", Number: 7}, revision: 9},
		"node b took it (number 9)":                 {value: value{Node: "b", Nonce: "x"}, revision: 9},
	} {
		if err := lostTo(e); !errors.Is(err, ErrLost) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want that %s", err, want)
		}
	}
}
