package claims_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
)

func TestTakeHoldRelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a, b := join(t, s, claims.Options{Node: "a", StoreID: "S", Boot: "B"}), join(t, s, claims.Options{Node: "b"})
		began := time.Now()
		l := a.take(t, key)
		if !l.Valid() || l.Err() != nil || l.Key() != key || l.Number() == 0 || l.Revision() != l.Number() {
			t.Fatalf("got valid %v, error %v, key %s, number %d, revision %d", l.Valid(), l.Err(), l.Key(), l.Number(), l.Revision())
		}
		if got, want := l.Deadline().Sub(began), ttl-ttl/100; got != want {
			t.Fatalf("got a lease of %v, want %v", got, want)
		}
		_, err := b.TryAcquire(t.Context(), key)
		held, ok := errors.AsType[*claims.HeldError](err)
		if !ok || !errors.Is(err, claims.ErrHeld) || held.Key != key || held.Holder != "a" || held.Number != l.Number() || held.Until.Sub(began) != ttl {
			t.Fatalf("got %v, want held by a, number %d, until %v", err, l.Number(), began.Add(ttl))
		}
		if _, err := a.TryAcquire(t.Context(), key); !errors.Is(err, claims.ErrHeld) {
			t.Fatalf("got %v from the holder itself, want %v", err, claims.ErrHeld)
		}
		time.Sleep(time.Hour)
		if !l.Valid() || l.Revision() <= l.Number() {
			t.Fatalf("got valid %v, revision %d, want a lease that was renewed for an hour", l.Valid(), l.Revision())
		}
		list, err := b.List(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("got %v, %v, want one claim", list, err)
		}
		i := list[0]
		if i.Key != key || i.Node != "a" || i.StoreID != "S" || i.Boot != "B" || i.Number != l.Number() || i.Revision != l.Revision() || i.Expired || i.Malformed ||
			!i.Since.Equal(began) || i.Deadline.Before(time.Now()) || i.Deadline.After(time.Now().Add(ttl)) {
			t.Fatalf("got %+v", i)
		}

		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l.Valid() || !errors.Is(l.Err(), claims.ErrReleased) || errors.Is(l.Err(), claims.ErrLost) {
			t.Fatalf("got valid %v, error %v, want %v", l.Valid(), l.Err(), claims.ErrReleased)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatalf("a second release: %v", err)
		}
		next := b.take(t, key)
		if next.Number() <= l.Revision() {
			t.Fatalf("got number %d after revision %d, want a higher one", next.Number(), l.Revision())
		}
		if err := l.Release(t.Context()); err != nil || !next.Valid() {
			t.Fatalf("got %v, valid %v: a late release touched the next holder", err, next.Valid())
		}
	})
}

func TestValueIsReadable(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a := join(t, s, claims.Options{Node: "a", StoreID: "S", Boot: "B"})
		l := a.take(t, key)
		time.Sleep(ttl / 2)
		body, _, err := a.conn.KVGet(t.Context(), bucket, key)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if got["node"] != "a" || got["storeId"] != "S" || got["boot"] != "B" || got["ttl"] != 10.0 || got["number"] != float64(l.Number()) || got["nonce"] == "" {
			t.Fatalf("got %s", body)
		}
		for _, f := range []string{"since", "deadline"} {
			if _, err := time.Parse(time.RFC3339Nano, fmt.Sprint(got[f])); err != nil {
				t.Errorf("%s: %v", f, err)
			}
		}
	})
}

func TestExpiredClaimIsIgnored(t *testing.T) {
	// What the server does not remove by itself: a key whose TTL somebody took off, or that nobody here wrote.
	valid := `{"node":"old","nonce":"x-1","since":"2000-01-01T00:00:00Z","deadline":"2000-01-01T00:00:05Z","ttl":5}`
	for _, tc := range []struct {
		name, value string
		after       time.Duration // when others may take it
	}{
		{"S3-8/a claim without a TTL", valid, 5 * time.Second},
		{"S3-8/a deadline in the far future changes nothing", strings.Replace(valid, "2000-01-01T00:00:05", "2200-01-01T00:00:05", 1), 5 * time.Second},
		{"S3-8/no claim at all", "hello", ttl},
		{"S3-8/an empty value", "", ttl},
		{"S3-8/a boot of no store", strings.Replace(valid, `"nonce"`, `"boot":"x","nonce"`, 1), 5 * time.Second},
		{"S3-8/a TTL out of bounds", strings.Replace(valid, `"ttl":5`, `"ttl":1e9`, 1), ttl},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded.Server) {
				a := join(t, s, claims.Options{Node: "a"})
				rev, err := a.conn.KVCreate(t.Context(), bucket, key, []byte(tc.value), 0)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(tc.after)
				if l, err := a.TryAcquire(t.Context(), key); !errors.Is(err, claims.ErrHeld) {
					t.Fatalf("got %v, %v at its end, want %v", l, err, claims.ErrHeld)
				}
				if list, err := a.List(t.Context()); err != nil || len(list) != 1 || list[0].Expired || list[0].Malformed != (tc.after == ttl) {
					t.Fatalf("got %+v, %v", list, err)
				}
				time.Sleep(time.Second)
				if list, err := a.List(t.Context()); err != nil || len(list) != 1 || !list[0].Expired {
					t.Fatalf("got %+v, %v, want it expired", list, err)
				}
				if l := a.take(t, key); l.Number() != rev+2 { // it is deleted first
					t.Fatalf("got number %d, want %d", l.Number(), rev+2)
				}
			})
		})
	}
}

func TestExpiredLeaseIsNotValid(t *testing.T) {
	for name, cut := range map[string]func(*peer){
		"S3-9/what it says is lost":         func(p *peer) { p.wire.dumb.Store(true) },
		"S3-9/what the server says is lost": func(p *peer) { p.wire.deaf.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded.Server) {
				a := join(t, s, claims.Options{Node: "a"})
				l := a.take(t, key)
				time.Sleep(ttl / 2) // between two renewals
				last := l.Deadline()
				cut(a)
				for time.Now().Before(last) {
					if !l.Valid() {
						t.Fatalf("not valid %v before its end", time.Until(last))
					}
					time.Sleep(10 * time.Millisecond)
				}
				if l.Valid() {
					t.Fatal("valid after its end, although nobody has taken the key")
				}
				ends(t, l, time.Millisecond, claims.ErrExpired)
				if !errors.Is(l.Err(), claims.ErrLost) {
					t.Fatalf("got %v, want it to wrap %v", l.Err(), claims.ErrLost)
				}
			})
		})
	}
}

func TestExpiryIsToldWithoutBeingAsked(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a := join(t, s, claims.Options{Node: "a"})
		l := a.take(t, key)
		a.wire.dumb.Store(true)
		last := l.Deadline()
		if ends(t, l, ttl, claims.ErrExpired); !time.Now().Equal(last) {
			t.Fatalf("told at %v, want %v", time.Now(), last)
		}
	})
}

func TestSlowNodeKeepsItsClaims(t *testing.T) {
	t.Run("S3-13", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			// The slow node writes no node record; nothing but the claim itself counts.
			slow, other := join(t, s, claims.Options{Node: "slow"}), join(t, s, claims.Options{Node: "other"})
			slow.wire.delay.Store(int64(2 * time.Second))
			l := slow.take(t, key)
			for range 200 {
				if _, err := other.TryAcquire(t.Context(), key); !errors.Is(err, claims.ErrHeld) {
					t.Fatalf("got %v, want %v", err, claims.ErrHeld)
				}
				if !l.Valid() {
					t.Fatal("a node that renews slowly lost its claim")
				}
				time.Sleep(time.Second)
			}
			slow.wire.dumb.Store(true)
			ends(t, l, ttl, claims.ErrExpired)
		})
	})
}

func TestTakeOver(t *testing.T) {
	for _, life := range []time.Duration{time.Second, 1500 * time.Millisecond, ttl, time.Minute} {
		t.Run(life.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded.Server) {
				a, b := join(t, s, claims.Options{Node: "a", TTL: life}), join(t, s, claims.Options{Node: "b", TTL: life})
				l := a.take(t, key)
				time.Sleep(life + life/7)
				if !l.Valid() {
					t.Fatal("lost without a reason")
				}
				a.kill()
				killed := time.Now()
				for {
					next, err := b.TryAcquire(t.Context(), key)
					if err == nil {
						if l.Valid() {
							t.Fatal("both are valid")
						}
						if got := time.Since(killed); got > life+time.Second {
							t.Fatalf("taken over after %v, want at most %v", got, life+time.Second)
						}
						if next.Number() <= l.Revision() {
							t.Fatalf("got number %d, want one above %d", next.Number(), l.Revision())
						}
						if err := next.Release(t.Context()); err != nil {
							t.Fatal(err)
						}
						return
					}
					if !errors.Is(err, claims.ErrHeld) || time.Since(killed) > time.Hour {
						t.Fatal(err)
					}
					time.Sleep(max(life/100, 20*time.Millisecond))
				}
			})
		})
	}
}

func TestRenewalKeepsTheTTL(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a, reader := join(t, s, claims.Options{Node: "a"}), embeddedtest.Connect(t, s)
		a.take(t, key)
		for range 100 {
			time.Sleep(time.Second)
			if _, _, err := reader.KVGet(t.Context(), bucket, key); err != nil {
				t.Fatalf("the key of a living holder: %v", err)
			}
		}
		a.kill()
		time.Sleep(ttl + time.Second)
		// The server removes it by itself, with nobody else there.
		if _, _, err := reader.KVGet(t.Context(), bucket, key); !errors.Is(err, natsconn.ErrNotFound) {
			t.Fatalf("got %v, want the key gone", err)
		}
	})
}

func TestTamperedKey(t *testing.T) {
	for name, tamper := range map[string]func(*testing.T, *natsconn.Conn, uint64) error{
		"deleted": func(t *testing.T, c *natsconn.Conn, rev uint64) error {
			return c.KVDelete(t.Context(), bucket, key, rev)
		},
		"purged": func(t *testing.T, c *natsconn.Conn, _ uint64) error {
			return c.PurgeSubject(t.Context(), "KV_"+bucket, "$KV."+bucket+"."+key)
		},
		"overwritten by a stranger": func(t *testing.T, c *natsconn.Conn, rev uint64) error {
			_, err := c.KVUpdate(t.Context(), bucket, key, []byte("mine"), rev, 0)
			return err
		},
		"overwritten by another claim": func(t *testing.T, c *natsconn.Conn, rev uint64) error {
			_, err := c.KVUpdate(t.Context(), bucket, key, []byte(`{"node":"evil","nonce":"e","ttl":10}`), rev, 0)
			return err
		},
		"rolled up with the bucket": func(t *testing.T, c *natsconn.Conn, _ uint64) error {
			_, err := c.PublishSync(t.Context(), "$KV."+bucket+".x", natsconn.Header{"Nats-Rollup": {"all"}}, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded.Server) {
				a, evil := join(t, s, claims.Options{Node: "a"}), embeddedtest.Connect(t, s)
				l := a.take(t, key)
				time.Sleep(ttl)
				if err := tamper(t, evil, l.Revision()); err != nil {
					t.Fatal(err)
				}
				if took := ends(t, l, ttl, claims.ErrLost); took > ttl/3+time.Second {
					t.Fatalf("noticed after %v, want a third of the TTL", took)
				}
				if errors.Is(l.Err(), claims.ErrExpired) {
					t.Fatalf("got %v, want a loss", l.Err())
				}
				if err := l.Release(t.Context()); err != nil {
					t.Fatalf("release of a lost lease: %v", err)
				}
			})
		})
	}
}

func TestEarlierBootOfTheSameStore(t *testing.T) {
	for _, tc := range []struct {
		name          string
		first, second claims.Options
		atOnce        bool
	}{
		{"another boot", claims.Options{StoreID: "S", Boot: "1"}, claims.Options{StoreID: "S", Boot: "2"}, true},
		{"the same boot", claims.Options{StoreID: "S", Boot: "1"}, claims.Options{StoreID: "S", Boot: "1"}, false},
		{"another store", claims.Options{StoreID: "S", Boot: "1"}, claims.Options{StoreID: "T", Boot: "2"}, false},
		{"a client of the store", claims.Options{}, claims.Options{StoreID: "S", Boot: "2"}, false},
		{"two clients", claims.Options{}, claims.Options{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded.Server) {
				tc.first.Node, tc.second.Node = "n", "n"
				dead, alive := join(t, s, tc.first), join(t, s, tc.second)
				l := dead.take(t, key)
				dead.kill()
				began := time.Now()
				next, err := alive.TryAcquire(t.Context(), key)
				if (err == nil) != tc.atOnce {
					t.Fatalf("got %v, %v, want it taken at once: %v", next, err, tc.atOnce)
				}
				if err != nil {
					return
				}
				if time.Since(began) > 100*time.Millisecond || next.Number() <= l.Number() {
					t.Fatalf("got number %d after %v, want one above %d at once", next.Number(), time.Since(began), l.Number())
				}
				if err := next.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}
