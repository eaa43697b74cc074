package timers_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// armed publishes an alarm as an owner with a fence does.
func (r *rig) armed(wid string, due time.Time) uint64 {
	r.t.Helper()
	body, err := schemas.Marshal(&schemas.Alarm{V: schemas.Version, Run: "RUN", Due: schemas.At(due), Fence: 7})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.put(ns.Alarm(0, wid, "RUN"), body)
}

// owner plays the owner of the partition: answer says what becomes of rings, nil is silence.
func (r *rig) owner(answer func(*schemas.Rings) *schemas.RingsAnswer) *atomic.Int64 {
	r.t.Helper()
	judged, asked := r.judged(answer)
	_, err := r.conn.Subscribe(ns.Fire(0), "", func(m natsconn.Msg) {
		q := &schemas.Rings{}
		if err := schemas.Unmarshal(m.Data, q); err != nil {
			r.t.Errorf("got %q (%v), want rings", m.Data, err)
		}
		go func() { // it may take its time
			a := judged(q)
			if a == nil {
				return
			}
			body, err := schemas.Marshal(a)
			if err == nil {
				err = m.Respond(nil, body)
			}
			if err != nil {
				r.t.Error(err)
			}
		}()
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return asked
}

// judged checks and counts rings before they are answered.
func (r *rig) judged(answer func(*schemas.Rings) *schemas.RingsAnswer) (func(*schemas.Rings) *schemas.RingsAnswer, *atomic.Int64) {
	var asked atomic.Int64
	return func(q *schemas.Rings) *schemas.RingsAnswer {
		for _, d := range q.Rings {
			if d.Run != "RUN" || d.Fence != 7 || time.Now().Before(d.Due.Time()) {
				r.t.Errorf("at %v: got the ring %+v, want one that is due, of the fence 7", time.Now(), d)
			}
		}
		asked.Add(int64(len(q.Rings)))
		return answer(q)
	}, &asked
}

// all answers that every ring is done.
func all(q *schemas.Rings) *schemas.RingsAnswer {
	a := &schemas.RingsAnswer{V: schemas.Version}
	for _, d := range q.Rings {
		a.Done = append(a.Done, d.Sequence)
	}
	return a
}

// What the owner answers decides by which way an alarm rings, and when it goes. Whatever he says, it rings and goes.
func TestOwnerAnswers(t *testing.T) { // P-10, I8
	const n = 3
	for _, tc := range []struct {
		name   string
		answer func(*schemas.Rings) *schemas.RingsAnswer
		inbox  int           // rings that come through the inbox
		later  time.Duration // their time
	}{
		{"done", all, 0, 0},
		{"nothing", func(*schemas.Rings) *schemas.RingsAnswer { return nil }, n, 2 * time.Second},
		{"refused", func(*schemas.Rings) *schemas.RingsAnswer { return &schemas.RingsAnswer{Refused: true} }, n, 0},
		{"what it does not know", func(*schemas.Rings) *schemas.RingsAnswer { return &schemas.RingsAnswer{} }, n, 0},
		{"of alarms that nobody asked for", func(*schemas.Rings) *schemas.RingsAnswer { return &schemas.RingsAnswer{Done: []uint64{1000}} }, n, 2 * time.Second},
		{"one only", func(q *schemas.Rings) *schemas.RingsAnswer {
			return &schemas.RingsAnswer{Done: all(q).Done[:1]}
		}, n - 1, 2 * time.Second},
		{"one, and refuses the others", func(q *schemas.Rings) *schemas.RingsAnswer {
			return &schemas.RingsAnswer{Done: all(q).Done[:1], Refused: true}
		}, n - 1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				asked := r.owner(tc.answer)
				due := time.Now().Add(time.Minute)
				var doubts atomic.Int64
				r.start(r.cutWorker("n1", func(subj string, _ []byte) cutwire.Verdict {
					if later := time.Since(due); subj == "$JS.API.STREAM.INFO."+ns.StreamHistory(0) && later >= 0 && later < 400*time.Millisecond {
						doubts.Add(1)
					}
					return cutwire.Pass
				}))
				for i := range n {
					r.armed(fmt.Sprint("w", i), due)
				}
				for range tc.inbox {
					if got := r.next(); !got.at.Equal(due.Add(tc.later)) {
						t.Fatalf("got a ring %v after its time, want %v", got.at.Sub(due), tc.later)
					}
				}
				r.quiet(time.Minute + 10*time.Second)
				r.pending(0)
				if got := asked.Load(); got != n {
					t.Errorf("the owner was asked %d times, want %d", got, n)
				}
				if refused := strings.Contains(tc.name, "refuse"); refused != (doubts.Load() > 0) {
					t.Errorf("the server was asked for its time %d times at once, want that after a refusal alone", doubts.Load())
				}
			})
		})
	}
}

// The owner is told only of alarms of which it is known who armed them.
func TestAlarmOfAnUnknownOwner(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		asked := r.owner(all)
		r.start(r.workerOn(r.dial(), "n1"))
		due := time.Now().Add(time.Minute)
		r.expect("w", due, r.arm("w", due))
		r.pending(0)
		if n := asked.Load(); n != 0 {
			t.Fatalf("the owner was told of %d", n)
		}
	})
}

// A worker that has lost its claim while it rings leaves what is due besides to whoever has it next.
func TestFiringStopsWithTheClaim(t *testing.T) { // P-15
	bubble(t, func(t *testing.T, r *rig) {
		var mu sync.Mutex
		var lost, last time.Time // when the first ring was sent, and the last one
		r.start(r.cutWorker("n1", func(subj string, _ []byte) cutwire.Verdict {
			mu.Lock()
			defer mu.Unlock()
			if subj == ns.Fire(0) || strings.HasPrefix(subj, "drover.default.in.0.") {
				if last = time.Now(); lost.IsZero() {
					lost = last
				}
			}
			if lost.IsZero() {
				return cutwire.Pass
			}
			return cutwire.Swallow
		}))
		const n = 300
		due := time.Now().Add(time.Minute)
		for i := range n {
			r.armed(fmt.Sprint("w", i), due.Add(time.Duration(i)*100*time.Millisecond))
		}
		time.Sleep(2*time.Minute + 2*claimTTL)
		mu.Lock()
		defer mu.Unlock()
		if fired := last.Sub(lost); lost.IsZero() || fired < time.Second || fired > claimTTL {
			t.Errorf("it rings for %v without its claim, want for some seconds, and no longer than the claim lasts", fired)
		}
	})
}

// What is due beyond what the owner may have in hand is rung as soon as there are outcomes.
func TestOwnerGetsAWindow(t *testing.T) {
	const n = 1000
	bubble(t, func(t *testing.T, r *rig) {
		asked := r.owner(func(q *schemas.Rings) *schemas.RingsAnswer {
			time.Sleep(5 * time.Millisecond)
			return all(q)
		})
		r.start(r.workerOn(r.dial(), "n1"))
		due := time.Now().Add(time.Minute)
		for i := range n {
			r.armed(fmt.Sprint("w", i), due)
		}
		time.Sleep(time.Until(due))
		synctest.Wait()
		if got := asked.Load(); got == 0 || got > 128 {
			t.Errorf("the owner was asked for %d at once, want some and not all", got)
		}
		time.Sleep(60 * time.Millisecond) // the window that it begins with would take some 80
		if got := asked.Load(); got != n {
			t.Errorf("the owner was asked for %d by then, want %d", got, n)
		}
		r.quiet(10 * time.Second)
		r.pending(0)
	})
}

// Nobody is there who could be asked: the rings are in the inbox at once, and the next ones are not sent elsewhere first.
func TestNoOwner(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var asked atomic.Int64
		r.start(r.cutWorker("n1", func(subj string, _ []byte) cutwire.Verdict {
			if subj == ns.Fire(0) {
				asked.Add(1)
			}
			return cutwire.Pass
		}))
		due := time.Now().Add(time.Minute)
		for i := range 10 {
			at := due.Add(time.Duration(i) * 10 * time.Millisecond)
			r.expect("w", at, r.armed("w", at))
		}
		r.pending(0)
		if got := asked.Load(); got != 1 {
			t.Errorf("the owner was asked %d times, want 1: nobody was there", got)
		}
		at := time.Now().Add(time.Second)
		r.expect("w", at, r.armed("w", at))
		if got := asked.Load(); got != 2 {
			t.Errorf("the owner was asked %d times, want it to be asked again after a while", got)
		}
	})
}

// One that says nothing of some rings has a reason for it, and is asked for the next.
func TestOwnerThatAnswersSomeIsAskedOn(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		asked := r.owner(func(q *schemas.Rings) *schemas.RingsAnswer {
			return &schemas.RingsAnswer{Done: all(q).Done[:1]}
		})
		w, _ := r.worker("n1")
		r.start(w)
		due := time.Now().Add(time.Minute)
		for i, at := range []time.Time{due, due, due.Add(5 * time.Second)} {
			r.armed(fmt.Sprint("w", i), at)
		}
		r.next()
		r.quiet(time.Minute)
		r.pending(0)
		if got := asked.Load(); got != 3 {
			t.Errorf("the owner was asked %d times, want 3", got)
		}
	})
}

// A user who may not publish to owners rings by the inbox, and tries nothing else from then on. What others on the connection are refused is theirs.
func TestOwnerMayNotBeTold(t *testing.T) {
	for _, refused := range []string{ns.Fire(0), "shop.sold"} {
		t.Run(refused, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) { testOwnerMayNotBeTold(t, refused) })
		})
	}
}

func testOwnerMayNotBeTold(t *testing.T, refused string) {
	allowed := []string{"$JS.>", "$KV.>", ns.AllIn(0)}
	if refused != ns.Fire(0) {
		allowed = append(allowed, ns.Fire(0))
	}
	srv, _ := embeddedtest.Start(t, false, embeddedtest.User{Name: "timers", Publish: allowed, Subscribe: []string{">"}})
	r := &rig{t: t, conn: embeddedtest.As(t, srv, embeddedtest.Root), fires: make(chan fire, 10)}
	r.logger, r.log = logtest.NewNullLogger()
	if _, err := topology.Ensure(t.Context(), r.conn, topology.Options{Partitions: 1, Memory: true}); err != nil {
		t.Fatal(err)
	}
	r.follow()
	asked := r.owner(all)
	conn := embeddedtest.As(t, srv, "timers")
	r.start(r.workerOn(conn, "n1"))
	due := time.Now().Add(time.Minute)
	for i := range 3 { // long enough apart for what is tried again by itself
		r.armed(fmt.Sprint("w", i), due.Add(time.Duration(i)*20*time.Second))
	}
	time.Sleep(time.Second)
	if err := conn.PublishHeard(t.Context(), refused, nil, nil); !errors.Is(err, natsconn.ErrPermission) {
		t.Errorf("got %v, want that the server refuses it", err)
	}
	want, told := 1, 0
	if refused != ns.Fire(0) {
		want = 0
		r.quiet(2 * time.Minute)
	}
	for i := range 3 * want {
		if got := r.next(); got.wid != fmt.Sprint("w", i) || got.at.Sub(got.Due.Time()) > 10*time.Millisecond {
			t.Errorf("got a ring for %s, %v after its time; want w%d at once", got.wid, got.at.Sub(got.Due.Time()), i)
		}
	}
	r.pending(0)
	for _, e := range r.log.AllEntries() {
		if strings.HasPrefix(e.Message, "the owner may not be told") {
			told++
		}
	}
	if n := asked.Load(); told != want || n != int64(3*(1-want)) {
		t.Errorf("the log says %d times that the owner may not be told, who was asked %d times; want %d and %d", told, n, want, 3*(1-want))
	}
}

// An alarm that replaces one that is ringing is not deleted with it, and rings in its turn.
func TestReplacedWhileItFires(t *testing.T) { // P-10
	bubble(t, func(t *testing.T, r *rig) {
		var r2 atomic.Bool
		asked := r.owner(func(q *schemas.Rings) *schemas.RingsAnswer {
			if r2.CompareAndSwap(false, true) {
				r.armed("w", time.Now().Add(time.Minute))
				time.Sleep(10 * time.Millisecond) // the worker has read it
			}
			return all(q)
		})
		w, _ := r.worker("n1")
		r.start(w)
		r.armed("w", time.Now().Add(time.Minute))
		time.Sleep(90 * time.Second)
		r.pending(1)
		time.Sleep(time.Minute)
		r.pending(0)
		if got := asked.Load(); got != 2 {
			t.Errorf("the owner was asked %d times, want 2", got)
		}
	})
}

// A storm is swept by a purge, up to the first alarm that is needed, or to one that must become a dead letter; after that
// each is deleted. A worker that dies in between leaves what it had not deleted, and the next one rings that again.
func TestSweepOfAStorm(t *testing.T) { // P-9, P-10, I15
	const n = 500
	for _, tc := range []struct {
		name    string
		needed  bool // an alarm that is due in a year stands before the others
		verdict cutwire.Verdict
		purges  bool
	}{
		{"nothing before it", false, cutwire.Pass, true},
		{"after an alarm that is needed", true, cutwire.Pass, false},
		{"killed before the purge", false, cutwire.CutBefore, true},
		{"purge lost", false, cutwire.Swallow, true},
		{"connection lost with the purge", false, cutwire.Break, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				asked := r.owner(all)
				var purges, deletions atomic.Int64
				judge := func(subj string, _ []byte) cutwire.Verdict {
					switch {
					case strings.HasPrefix(subj, "$JS.API.STREAM.PURGE."):
						if purges.Add(1) == 1 {
							return tc.verdict
						}
					case strings.HasPrefix(subj, deleteAPI):
						deletions.Add(1)
					}
					return cutwire.Pass
				}
				left := uint64(0)
				if tc.needed {
					left = 1
					r.armed("needed", time.Now().AddDate(1, 0, 0))
				}
				r.put(ns.Alarm(0, "broken", "RUN"), []byte("\x07"))
				r.start(r.cutWorker("n1", judge))
				r.start(r.cutWorker("n2", judge))
				due := time.Now().Add(time.Minute)
				for i := range n {
					r.armed(fmt.Sprint("w", i), due)
				}
				time.Sleep(2 * time.Minute)
				r.pending(left)
				if got := asked.Load(); got < n || got > 2*n {
					t.Errorf("the owner was asked %d times, want %d, or twice as many", got, n)
				}
				if purges.Load() > 0 != tc.purges || tc.verdict == cutwire.Pass && tc.purges && deletions.Load() > n/2 {
					t.Errorf("got %d purges and %d deletions, want purges %v", purges.Load(), deletions.Load(), tc.purges)
				}
				if _, last, err := r.conn.StreamState(t.Context(), ns.StreamDead()); err != nil || last != 1 {
					t.Errorf("%d dead letters (%v), want that of the alarm that cannot be read", last, err)
				}
			})
		})
	}
}

// sweeps counts what a worker purges and deletes.
type sweeps struct{ purges, deletions atomic.Int64 }

func (s *sweeps) judge(subj string, _ []byte) cutwire.Verdict {
	switch {
	case strings.HasPrefix(subj, "$JS.API.STREAM.PURGE."):
		s.purges.Add(1)
	case strings.HasPrefix(subj, deleteAPI):
		s.deletions.Add(1)
	}
	return cutwire.Pass
}

// While alarms ring a purge waits until it removes a good share of what stays, because the server writes all that stays
// after each; nothing rung is deleted one by one meanwhile, whether rings are always under way or answered at once, and
// nothing is left over in the end.
func TestPurgesArePacedByWhatStays(t *testing.T) {
	const stay = 1000
	for _, tc := range []struct {
		name  string
		n     int // in ten seconds
		takes time.Duration
		mixed int // so many at a time are not in the order of their messages
	}{
		{"answered at once", 1000, 0, 1},
		{"always under way", 1000, 30 * time.Millisecond, 1},
		{"many out of order", 4000, 0, 600},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n, apart := tc.n, 10*time.Second/time.Duration(tc.n)
			bubble(t, func(t *testing.T, r *rig) {
				var asked atomic.Int64
				_, err := r.conn.Subscribe(ns.Fire(0), "", func(m natsconn.Msg) {
					if m.Reply == "" {
						return // a hint
					}
					time.AfterFunc(tc.takes, func() {
						q := &schemas.Rings{}
						err := schemas.Unmarshal(m.Data, q)
						asked.Add(int64(len(q.Rings)))
						body, err2 := schemas.Marshal(all(q))
						if err := errors.Join(err, err2, m.Respond(nil, body)); err != nil {
							t.Error(err)
						}
					})
				})
				if err != nil {
					t.Fatal(err)
				}
				var s sweeps
				r.start(r.cutWorker("n1", s.judge))
				due := time.Now().Add(time.Minute)
				r.armed("long before", due.Add(-30*time.Second)) // it is not what the others wait for
				for i := range n {
					place := i - i%tc.mixed + i*7%tc.mixed
					r.armed(fmt.Sprint("w", i), due.Add(time.Duration(place)*apart))
				}
				for i := range stay {
					r.armed(fmt.Sprint("later", i), due.AddDate(1, 0, 0))
				}
				time.Sleep(2 * time.Minute)
				r.pending(stay)
				if got := asked.Load(); got != int64(1+n) {
					t.Errorf("the owner was asked %d times, want %d", got, 1+n)
				}
				if p, d := s.purges.Load(), s.deletions.Load(); p < 1 || p > 12 || tc.mixed == 1 && d > int64(n/10) {
					t.Errorf("got %d purges and %d deletions for %d rings in 10 s, want a few and hardly any", p, d, n)
				}
			})
		})
	}
}

// Where alarms ring all the time, but so few that a purge is not worth its while, what has rung is deleted within some two seconds.
func TestWhatHasFiredDoesNotStayForLong(t *testing.T) {
	const n, apart = 200, 300 * time.Millisecond
	bubble(t, func(t *testing.T, r *rig) {
		r.owner(all)
		var s sweeps
		r.start(r.cutWorker("n1", s.judge))
		due := time.Now().Add(time.Minute)
		for i := range n {
			r.armed(fmt.Sprint("w", i), due.Add(time.Duration(i)*apart))
		}
		for i := range n {
			r.armed(fmt.Sprint("later", i), due.AddDate(1, 0, 0))
		}
		for at := 15 * time.Second; at < n*apart; at += 3700 * time.Millisecond {
			time.Sleep(time.Until(due.Add(at)))
			fired, most := int(at/apart), int(2500*time.Millisecond/apart)
			if stay := int(r.alarms()) - (2*n - fired); stay > most {
				t.Fatalf("%d alarms that have rung are in the stream %v after the first one, want at most %d", stay, at, most)
			}
		}
		time.Sleep(10 * time.Second)
		r.pending(n)
		if got := s.deletions.Load(); got < n/2 {
			t.Errorf("got %d deletions: this test wants alarms that no purge takes", got)
		}
	})
}

// Rings that are stuck for half a second do not count for the window (ADR 0032): what is due after them rings then.
func TestStuckFiresKeepNobodyFromFiring(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var mu sync.Mutex
		var at time.Time
		r.owner(func(q *schemas.Rings) *schemas.RingsAnswer {
			a := &schemas.RingsAnswer{V: schemas.Version}
			for _, d := range q.Rings {
				if strings.HasPrefix(d.WorkflowID, "good") {
					mu.Lock()
					at = time.Now()
					mu.Unlock()
					a.Done = append(a.Done, d.Sequence)
				}
			}
			if len(a.Done) == 0 {
				return nil
			}
			return a
		})
		r.start(r.workerOn(r.dial(), "n1"))
		due := time.Now().Add(time.Minute)
		for i := range 64 {
			r.armed(fmt.Sprint("bad", i), due)
		}
		r.armed("good", due.Add(100*time.Millisecond))
		time.Sleep(2 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if late := at.Sub(due.Add(100 * time.Millisecond)); late > 450*time.Millisecond {
			t.Errorf("the good one rang %v late, want 400 ms", late)
		}
	})
}
