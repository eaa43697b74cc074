package timers_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/timers"
)

func TestFiresExactlyWhenDue(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w, _ := r.worker("n1")
		now := time.Now()
		early := r.arm("stored before the worker", now.Add(20*time.Minute))
		past := r.arm("past", now.Add(-time.Hour))
		stop := r.start(w)
		if got := r.next(); got.wid != "past" || got.Sequence != past {
			t.Fatalf("got a ring for %s, want past", got.wid)
		}
		odd := now.Add(90*time.Second + 123456789)
		later := r.arm("stored later / odd.id", odd)
		r.expect("stored later / odd.id", odd, later)
		r.expect("stored before the worker", now.Add(20*time.Minute), early)
		r.pending(0)
		r.quiet(10 * time.Minute)
		if err := stop(); err != nil {
			t.Fatalf("got %v, want a clean end", err)
		}
	})
}

// Who has closed the connection of a worker learns that nothing rings any more: another one may serve the partitions, or nobody.
func TestRunEndsWithItsConnection(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w, conn := r.worker("n1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		time.AfterFunc(time.Second, conn.Close)
		for _, when := range []string{"while it runs", "before"} {
			if err := w.Run(ctx); !errors.Is(err, natsconn.ErrClosed) {
				t.Errorf("%s: got %v, want that the connection is closed", when, err)
			}
		}
	})
}

func TestTheLatestAlarmCounts(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w, _ := r.worker("n1")
		r.start(w)
		now := time.Now()
		r.arm("moves earlier", now.Add(10*time.Minute))
		r.arm("moves later", now.Add(time.Minute))
		time.Sleep(30 * time.Second)
		later := r.arm("moves later", now.Add(20*time.Minute))
		earlier := r.arm("moves earlier", now.Add(40*time.Second))
		r.expect("moves earlier", now.Add(40*time.Second), earlier)
		r.expect("moves later", now.Add(20*time.Minute), later)
		r.quiet(10 * time.Minute)
	})
}

func TestTenThousandAlarms(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		const n = 10_000
		w, _ := r.worker("n1")
		r.start(w)
		time.Sleep(time.Second)
		outbox, err := r.conn.NewOutbox(natsconn.OutboxOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(outbox.Close)
		now := time.Now()
		due := map[string]time.Time{}
		for i := range n {
			// In no order, half of them in one instant.
			wid, at := fmt.Sprintf("w%d", i), now.Add(time.Minute)
			if i%2 == 0 {
				at = now.Add(time.Minute + time.Duration(i*7919%n)*time.Millisecond)
			}
			due[wid] = at
			body, err := schemas.Marshal(&schemas.Alarm{Run: "RUN", Due: schemas.At(at)})
			if err != nil {
				t.Fatal(err)
			}
			outbox.Send(ns.Alarm(0, wid, "RUN"), nil, body, nil)
		}
		var last time.Time
		for range n {
			got := r.next()
			if want := due[got.wid]; !got.at.Equal(want) {
				t.Fatalf("got the ring of %s at %v, want %v", got.wid, got.at, want)
			}
			if got.at.Before(last) {
				t.Fatalf("got the ring of %s after a later one", got.wid)
			}
			last = got.at
			delete(due, got.wid)
		}
		r.pending(0)
		r.quiet(2 * time.Minute)
	})
}

func TestAnotherWorkerTakesOver(t *testing.T) {
	for _, crash := range []bool{false, true} {
		t.Run(map[bool]string{false: "after a planned stop", true: "after a crash"}[crash], func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				first, conn := r.worker("n1")
				stop := r.start(first)
				time.Sleep(time.Second)
				second, _ := r.worker("n2")
				r.start(second)
				now := time.Now()
				r.expectOne("before", now.Add(5*time.Second))
				if crash {
					r.pending(0) // else it would ring twice
					conn.Close()
				} else if err := stop(); err != nil {
					t.Fatal(err)
				}
				seq := r.arm("while nobody rings", time.Now().Add(time.Millisecond))
				due := time.Now().Add(time.Millisecond)
				got := r.next()
				wait, limit := got.at.Sub(due), 100*time.Millisecond
				if crash {
					limit = claimTTL + time.Second
				}
				if got.wid != "while nobody rings" || got.Sequence != seq || wait < 0 || wait > limit {
					t.Fatalf("got the ring of %s %v late, want at most %v", got.wid, wait, limit)
				}
				r.expectOne("after", time.Now().Add(time.Minute))
				r.pending(0)
				r.quiet(2 * time.Minute)
			})
		})
	}
}

func (r *rig) expectOne(wid string, due time.Time) {
	r.t.Helper()
	r.expect(wid, due, r.arm(wid, due))
}

// TestNewerAlarmSurvives has the owner arm a run anew at the very moment at which its ring comes in, before the worker
// deletes the alarm that it rang.
func TestNewerAlarmSurvives(t *testing.T) {
	t.Run("P-10", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			const rounds = 50
			start := time.Now()
			armed := make(chan uint64, rounds)
			n := 0
			r.onFire = func(fire) {
				if n++; n < rounds {
					armed <- r.arm("w", start.Add(time.Duration(n+1)*time.Minute))
				}
			}
			w, _ := r.worker("n1")
			r.start(w)
			seq := r.arm("w", start.Add(time.Minute))
			for i := range rounds {
				r.expect("w", start.Add(time.Duration(i+1)*time.Minute), seq)
				if i < rounds-1 {
					seq = <-armed
				}
			}
			r.pending(0)
			r.quiet(2 * time.Minute)
		})
	})
}

// TestOnlyTheSequenceIsDeleted uses an alarm stream that keeps the older messages of a subject.
func TestOnlyTheSequenceIsDeleted(t *testing.T) {
	t.Run("P-10", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			js := r.conn.JetStream()
			s, err := js.Stream(t.Context(), ns.StreamAlarms(0))
			if err != nil {
				t.Fatal(err)
			}
			cfg := s.CachedInfo().Config
			cfg.MaxMsgsPerSubject = 2
			if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			first := r.arm("w", time.Now().Add(time.Minute))
			w, _ := r.worker("n1")
			r.start(w)
			time.Sleep(time.Second)
			second := r.arm("w", time.Now().Add(time.Minute))
			if got := r.next(); got.Sequence != second {
				t.Fatalf("got a ring for message %d, want %d", got.Sequence, second)
			}
			r.pending(1)
			if _, err := r.conn.GetSeq(t.Context(), ns.StreamAlarms(0), first); err != nil {
				t.Fatalf("got %v, want the message that was not rung", err)
			}
		})
	})
}

func TestDeletedAlarmFiresInVain(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w, _ := r.worker("n1")
		r.start(w)
		time.Sleep(time.Second)
		due := time.Now().Add(time.Minute)
		seq := r.arm("w", due)
		time.Sleep(time.Second)
		if err := r.conn.DeleteMsg(t.Context(), ns.StreamAlarms(0), seq); err != nil {
			t.Fatal(err)
		}
		r.expect("w", due, seq) // the owner finds nothing due
		r.expectOne("w", time.Now().Add(time.Minute))
		r.quiet(2 * time.Minute)
	})
}

// TestUnknownFireIsRepeated takes the inbox away while alarms come due. The owner may see a ring twice, never none.
func TestUnknownFireIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		js := r.conn.JetStream()
		w, _ := r.worker("n1")
		r.start(w)
		time.Sleep(time.Second)
		s, err := js.Stream(t.Context(), ns.StreamIn(0))
		if err != nil {
			t.Fatal(err)
		}
		cfg := s.CachedInfo().Config
		if err := js.DeleteStream(t.Context(), ns.StreamIn(0)); err != nil {
			t.Fatal(err)
		}
		due := time.Now().Add(time.Second)
		r.arm("w", due)
		r.arm("replaced", due)
		time.Sleep(20*time.Second + 250*time.Millisecond) // between two tries
		later := time.Now().Add(time.Minute)
		r.arm("replaced", later)
		r.pending(2) // not rung, so not deleted
		if _, err := js.CreateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		r.follow()
		got := r.next()
		if wait := time.Since(due); got.wid != "w" || wait > 30*time.Second {
			t.Fatalf("got the ring of %s after %v, want w soon after the inbox is back", got.wid, wait)
		}
		for got = r.next(); got.wid == "w"; got = r.next() {
		}
		if got.wid != "replaced" || !got.at.Equal(later) {
			t.Fatalf("got the ring of %s at %v, want replaced at %v", got.wid, got.at, later)
		}
		r.pending(0)
		warned := 0
		for _, e := range r.log.AllEntries() {
			if strings.HasPrefix(e.Message, "a ring was not stored") {
				warned++
			}
		}
		if warned != 1 {
			t.Fatalf("got %d warnings, want one for the whole outage", warned)
		}
	})
}

func TestClaimsSpreadOverPartitions(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		conn := r.dial()
		c, err := claims.Open(conn, ns.BucketClaims(), claims.Options{Node: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		other := subject.Namespace("other")
		if _, err := topology.Ensure(t.Context(), conn, topology.Options{Namespace: string(other), Partitions: 3, Memory: true}); err != nil {
			t.Fatal(err)
		}
		for p := range 3 {
			body, err := schemas.Marshal(&schemas.Alarm{Run: "RUN", Due: schemas.At(time.Now().Add(time.Minute))})
			if err != nil {
				t.Fatal(err)
			}
			r.put(other.Alarm(p, "w", "RUN"), body)
		}
		r.start(timers.New(conn, &timers.Options{Namespace: "other", Partitions: 3, Claims: c}))
		time.Sleep(2 * time.Minute)
		for p := range 3 {
			if last, err := r.conn.StreamLastSeq(t.Context(), other.StreamIn(p)); err != nil || last != 1 {
				t.Fatalf("partition %d: got %d rings (%v), want 1", p, last, err)
			}
		}
		infos, err := c.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, i := range infos {
			keys = append(keys, i.Key)
		}
		if slices.Sort(keys); !slices.Equal(keys, []string{"alarms.0", "alarms.1", "alarms.2", "timers.n1"}) {
			t.Fatalf("got claims %v, want alarms.0 to alarms.2 and that of the worker", keys)
		}
	})
}

// What ends a worker takes everything back that it has made on its connection, which may live on.
func TestNothingIsKeptOfAWorkerThatEnded(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.owner(all)
		conn := r.dial()
		ended := func() weak.Pointer[timers.Worker] {
			w := r.workerOn(conn, "n1")
			stop := r.start(w)
			r.armed("known", time.Now().Add(time.Second))
			due := time.Now().Add(2 * time.Second)
			r.expect("unknown", due, r.arm("unknown", due))
			r.pending(0)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			return weak.Make(w)
		}()
		poll.Until(t, time.Minute, "its connection does not keep it", func() bool { runtime.GC(); return ended.Value() == nil })
	})
}
