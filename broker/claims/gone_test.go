package claims_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/internal/virtual"
)

// missed is how long after the death of its holder a claim may stand.
const missed = 600 * time.Millisecond

// A holder that dies is missed long before its claims run out, by whoever is connected to the same server; the claims of others stand.
func TestClaimsOfTheDeadAreFree(t *testing.T) {
	t.Run("P-16", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			a, b, c := join(t, s, claims.Options{Node: "a"}), join(t, s, claims.Options{Node: "b"}), join(t, s, claims.Options{Node: "c"})
			own := a.take(t, key)
			a.take(t, "broker.a")
			a.take(t, "alarms.0")
			other := c.take(t, "alarms.1") // between those of a
			var lb atomic.Pointer[claims.Lease]
			stop := b.holding(t, claims.HoldOptions{}, keep(&lb))
			defer stop()
			time.Sleep(ttl)
			if valid(&lb) {
				t.Fatal("it was taken from a holder who lives")
			}
			a.kill()
			if own.Valid() {
				t.Error("a lease is valid on a connection that is closed")
			}
			if took := until(t, "b takes it", ttl, func() bool { return valid(&lb) }); took > missed {
				t.Errorf("it took %v, want at most %v", took, missed)
			}
			synctest.Wait()
			list, err := b.List(t.Context())
			if err != nil || len(list) != 2 || list[0].Node != "c" || list[1].Node != "b" || !other.Valid() {
				t.Errorf("got claims %+v, %v, want those of b and c; c valid: %t", list, err, other.Valid())
			}
		})
	})
}

// The claim goes with the connection that does its work, and with no other.
func TestConnectionOfTheWork(t *testing.T) {
	for _, dies := range []string{"the one of the work", "the one of the claims"} {
		t.Run(dies, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded.Server) {
				a, b := join(t, s, claims.Options{Node: "a"}), join(t, s, claims.Options{Node: "b"})
				work := embeddedtest.Connect(t, s)
				var la, lb atomic.Pointer[claims.Lease]
				stopA := a.holding(t, claims.HoldOptions{Conn: work}, keep(&la))
				until(t, "a takes it", time.Second, func() bool { return valid(&la) })
				stopB := b.holding(t, claims.HoldOptions{}, keep(&lb))
				time.Sleep(time.Second)
				limit := missed
				if dies == "the one of the work" {
					work.Close()
				} else {
					a.conn.Close() // no renewal arrives
					limit = ttl + time.Second
				}
				took := until(t, "b takes it", limit, func() bool {
					if valid(&la) && valid(&lb) {
						t.Fatal("both are valid")
					}
					return valid(&lb)
				})
				if dies != "the one of the work" && took < ttl/2 {
					t.Errorf("it was taken after %v, while the work might go on", took)
				}
				stopB()
				a.kill()
				stopA()
			})
		})
	}
}

// A holder whose connection breaks and who lives on has no right any more when it can send again, and takes the claim anew.
func TestReconnectEndsLeases(t *testing.T) {
	t.Run("P-16", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			wire := cutwire.New(s.Conn())
			conn := embeddedtest.Through(t, wire)
			a, err := claims.Open(conn, bucket, claims.Options{Node: "a"})
			if err != nil {
				t.Fatal(err)
			}
			p := &peer{Claims: a, conn: conn}
			var l atomic.Pointer[claims.Lease]
			stop := p.holding(t, claims.HoldOptions{Backoff: time.Hour}, keep(&l))
			defer stop()
			until(t, "it is taken", time.Second, func() bool { return valid(&l) })
			first := l.Load()
			var once sync.Once
			wire.Judge(func(string, []byte) (v cutwire.Verdict) {
				once.Do(func() { v = cutwire.Break })
				return v
			})
			if err := conn.Publish("x", nil, nil); err != nil {
				t.Fatal(err)
			}
			took := until(t, "it is taken again", ttl, func() bool { return l.Load() != first && valid(&l) })
			if first.Valid() || l.Load().Number() <= first.Number() {
				t.Errorf("the first lease is valid: %t; numbers %d, then %d", first.Valid(), first.Number(), l.Load().Number())
			}
			if err := first.Err(); err == nil || !isAll(err, claims.ErrReconnected, claims.ErrLost) {
				t.Errorf("it has ended by %v, want %v", err, claims.ErrReconnected)
			}
			if took > 3*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	})
}

// Of the clients of another server, and of holders that do not say where they listen, nothing is believed.
func TestClaimsThatAreLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		home, server string // "here" is the server's own id
		free         bool
	}{
		"a former version":      {},
		"another server's":      {home: "_INBOX.nobody.at-home", server: "another"},
		"no server":             {home: "_INBOX.nobody.at-home"},
		"this server's":         {home: "_INBOX.nobody.at-home", server: "here", free: true},
		"this server's, of old": {server: "here"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded.Server) {
				a := join(t, s, claims.Options{Node: "a"})
				if c.server == "here" {
					c.server = a.conn.NATS().ConnectedServerId()
				}
				body, err := json.Marshal(map[string]any{"node": "old", "nonce": "x-1", "ttl": 10, "home": c.home, "server": c.server})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := a.conn.KVCreate(t.Context(), bucket, key, body, ttl); err != nil {
					t.Fatal(err)
				}
				var l atomic.Pointer[claims.Lease]
				defer a.holding(t, claims.HoldOptions{}, keep(&l))()
				took := until(t, "it is taken", ttl+time.Second, func() bool { return valid(&l) })
				if free := took < missed; free != c.free || !free && took < ttl {
					t.Errorf("it was taken after %v, early: %t, want %t", took, free, c.free)
				}
			})
		})
	}
}

// Who may not ask leaves it to others, and to the time.
func TestMayNotAsk(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		srv, _ := embeddedtest.Start(t, false, embeddedtest.User{Name: "timer", Publish: []string{"$JS.API.>", "$JS.ACK.>", "$JS.FC.>", "$KV.>"}, Subscribe: []string{"_INBOX.>"}})
		root := embeddedtest.As(t, srv, embeddedtest.Root)
		makeBucket(t, root)
		holder, err := claims.Open(root, bucket, claims.Options{Node: "holder"})
		if err != nil {
			t.Fatal(err)
		}
		(&peer{Claims: holder}).take(t, key)
		conn := embeddedtest.As(t, srv, "timer")
		c, err := claims.Open(conn, bucket, claims.Options{Node: "timer"})
		if err != nil {
			t.Fatal(err)
		}
		p := &peer{Claims: c, conn: conn}
		var l atomic.Pointer[claims.Lease]
		defer p.holding(t, claims.HoldOptions{}, keep(&l))()
		time.Sleep(5 * time.Second)
		before := conn.NATS().Stats().OutMsgs
		time.Sleep(20 * time.Second)
		if sent := conn.NATS().Stats().OutMsgs - before; sent > 25 {
			t.Errorf("it sent %d messages in 20 s, though it was refused", sent)
		}
	})
}

// In a namespace of one node nobody is asked for.
func TestAloneAsksForNobody(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a := join(t, s, claims.Options{Node: "a", TTL: time.Hour})
		var l atomic.Pointer[claims.Lease]
		defer a.holding(t, claims.HoldOptions{Conn: embeddedtest.Connect(t, s)}, keep(&l))()
		until(t, "it is taken", time.Second, func() bool { return valid(&l) })
		before := a.conn.NATS().Stats().OutMsgs
		time.Sleep(time.Minute)
		if sent := a.conn.NATS().Stats().OutMsgs - before; sent > 1 {
			t.Errorf("it sent %d messages in a minute", sent)
		}
	})
}

// Many nodes ask about as many others as it takes, and no more, and find all that die at once.
func TestManyDie(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		var peers []*peer
		for i := range 24 {
			p := join(t, s, claims.Options{Node: fmt.Sprint("n", i)})
			p.take(t, fmt.Sprint("partition.", i))
			peers = append(peers, p)
		}
		last := peers[len(peers)-1]
		stop := last.Watch("none", func(string, bool) {}) // it follows the bucket, alone
		defer stop()
		time.Sleep(time.Second)
		for _, p := range peers[:20] {
			p.kill()
		}
		time.Sleep(2 * missed)
		list, err := last.List(t.Context())
		if err != nil || len(list) != 4 {
			t.Errorf("%d claims stand (%v), want those of the 4 that live", len(list), err)
		}
	})
}

// isAll tells whether an error wraps all of some others.
func isAll(err error, targets ...error) bool {
	for _, target := range targets {
		if !errors.Is(err, target) {
			return false
		}
	}
	return true
}

// A claim that has gone without a word is not deleted again and again.
func TestClaimThatIsGoneAlready(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a, b := join(t, s, claims.Options{Node: "a"}), join(t, s, claims.Options{Node: "b"})
		defer b.Watch("none", func(string, bool) {})() // it follows the bucket
		a.take(t, key)
		time.Sleep(time.Second)
		if err := a.conn.PurgeSubject(t.Context(), "KV_"+bucket, "$KV."+bucket+"."+key); err != nil {
			t.Fatal(err)
		}
		a.kill()
		time.Sleep(2 * missed)
		before := b.conn.NATS().Stats().OutMsgs
		time.Sleep(time.Minute)
		if sent := b.conn.NATS().Stats().OutMsgs - before; sent > 0 {
			t.Errorf("it sent %d messages in a minute", sent)
		}
	})
}
