package claims_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
)

// holding runs Hold in the background; stop ends it and waits.
func (p *peer) holding(t *testing.T, o claims.HoldOptions, fn func(context.Context, *claims.Lease) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := p.Hold(ctx, key, o, fn); err != nil {
			t.Errorf("Hold: %v", err)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// until waits in steps of a millisecond and returns how long it took.
func until(t *testing.T, what string, limit time.Duration, ok func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !ok() {
		if time.Since(began) > limit {
			t.Fatalf("%s: not within %v", what, limit)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(began)
}

// keep is an fn that holds on until its context ends.
func keep(to *atomic.Pointer[claims.Lease]) func(context.Context, *claims.Lease) error {
	return func(ctx context.Context, l *claims.Lease) error {
		to.Store(l)
		<-ctx.Done()
		return context.Cause(ctx)
	}
}

func valid(p *atomic.Pointer[claims.Lease]) bool {
	l := p.Load()
	return l != nil && l.Valid()
}

func TestHoldHandsOverAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		log, hook := logtest.NewNullLogger()
		a, b := join(t, s, claims.Options{Node: "a", Logger: log}), join(t, s, claims.Options{Node: "b"})
		var la, lb atomic.Pointer[claims.Lease]
		stopA := a.holding(t, claims.HoldOptions{}, keep(&la))
		until(t, "a takes it", time.Second, func() bool { return valid(&la) })
		stopB := b.holding(t, claims.HoldOptions{}, keep(&lb))
		time.Sleep(2 * ttl)
		if !valid(&la) || valid(&lb) {
			t.Fatalf("got a %v, b %v after two terms, want a alone", valid(&la), valid(&lb))
		}
		stopA()
		if took := until(t, "b takes it", time.Second, func() bool { return valid(&lb) }); took > 20*time.Millisecond {
			t.Fatalf("handed over in %v, want milliseconds", took)
		}
		if lb.Load().Number() <= la.Load().Revision() {
			t.Fatalf("got number %d after revision %d", lb.Load().Number(), la.Load().Revision())
		}
		stopB()
		if list, err := a.List(t.Context()); err != nil || len(list) != 0 {
			t.Fatalf("got %v, %v, want no claim left", list, err)
		}
		if all := hook.AllEntries(); len(all) > 0 {
			t.Errorf("got %q in the log, want nothing about work that has ended as it was to", all[0].Message)
		}
	})
}

func TestHoldTakesOverFromTheDead(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a, b := join(t, s, claims.Options{Node: "a"}), join(t, s, claims.Options{Node: "b"})
		var la, lb atomic.Pointer[claims.Lease]
		stopA := a.holding(t, claims.HoldOptions{}, keep(&la))
		until(t, "a takes it", time.Second, func() bool { return valid(&la) })
		stopB := b.holding(t, claims.HoldOptions{}, keep(&lb))
		time.Sleep(2 * ttl)
		a.kill()
		until(t, "b takes it", ttl+time.Second, func() bool {
			if valid(&la) && valid(&lb) {
				t.Fatal("both are valid")
			}
			return valid(&lb)
		})
		stopB()
		stopA()
	})
}

func TestHoldTellsItsWork(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a := join(t, s, claims.Options{Node: "a"})
		causes := make(chan error, 1)
		var l atomic.Pointer[claims.Lease]
		var stopping atomic.Bool
		stop := a.holding(t, claims.HoldOptions{}, func(ctx context.Context, lease *claims.Lease) error {
			l.Store(lease)
			<-ctx.Done()
			if stopping.Load() != lease.Valid() {
				t.Errorf("stopping %v: got a lease valid %v", stopping.Load(), lease.Valid())
			}
			time.Sleep(3 * time.Second) // hand over
			if stopping.Load() != lease.Valid() {
				t.Errorf("stopping %v, 3 s later: got a lease valid %v", stopping.Load(), lease.Valid())
			}
			causes <- context.Cause(ctx)
			return nil
		})
		until(t, "it is taken", time.Second, func() bool { return valid(&l) })
		first := l.Load() // not after the cause: by then it may be the second
		if err := a.conn.KVDelete(t.Context(), bucket, key, first.Revision()); err != nil {
			t.Fatal(err)
		}
		if cause := <-causes; !errors.Is(cause, claims.ErrLost) {
			t.Fatalf("got cause %v, want %v", cause, claims.ErrLost)
		}
		until(t, "it is taken again", time.Second, func() bool { return valid(&l) && l.Load() != first })
		stopping.Store(true)
		stop()
		if cause := <-causes; !errors.Is(cause, context.Canceled) || errors.Is(cause, claims.ErrLost) {
			t.Fatalf("got cause %v, want %v", cause, context.Canceled)
		}
	})
}

func TestHoldBackoff(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		log, hook := logtest.NewNullLogger()
		a := join(t, s, claims.Options{Node: "a", Logger: log})
		var calls []time.Time
		boom := errors.New("no disk")
		stop := a.holding(t, claims.HoldOptions{Backoff: 7 * time.Second}, func(context.Context, *claims.Lease) error {
			calls = append(calls, time.Now())
			return boom
		})
		time.Sleep(30 * time.Second)
		stop()
		if len(calls) != 5 {
			t.Fatalf("got %d calls in 30 s, want 5", len(calls))
		}
		for i := 1; i < len(calls); i++ {
			if got := calls[i].Sub(calls[i-1]); got < 7*time.Second || got > 7100*time.Millisecond {
				t.Fatalf("call %d came after %v, want 7 s", i, got)
			}
		}
		if e := hook.LastEntry(); e == nil || e.Level != logrus.WarnLevel || e.Data["err"] != boom || e.Data["claim"] != key {
			t.Fatalf("got log %v, want the error", e)
		}
	})
}

func TestHoldPrefers(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a, b := join(t, s, claims.Options{Node: "a"}), join(t, s, claims.Options{Node: "b"})
		var la, lb atomic.Pointer[claims.Lease]
		never := claims.HoldOptions{Backoff: 3 * time.Second, Prefer: func() bool { return false }}

		stopA := a.holding(t, never, keep(&la))
		time.Sleep(2 * time.Second)
		stopB := b.holding(t, claims.HoldOptions{}, keep(&lb))
		until(t, "the preferred takes it", 500*time.Millisecond, func() bool { return valid(&lb) })
		before := a.conn.NATS().Stats().OutMsgs
		time.Sleep(20 * time.Second)
		if valid(&la) || !valid(&lb) {
			t.Fatal("the other one holds it")
		}
		if sent := a.conn.NATS().Stats().OutMsgs - before; sent > 25+2*2*20 {
			t.Fatalf("the other one sent %d messages in 20 s, want a look a second at most, and two messages two times to learn whether the holder is there", sent)
		}
		stopB()
		took := until(t, "the other takes what nobody takes", time.Minute, func() bool { return valid(&la) })
		if took < 3*time.Second || took > 4*time.Second {
			t.Fatalf("taken after %v, want the backoff of 3 s", took)
		}
		stopA()

		var preferred atomic.Bool
		stopA = a.holding(t, claims.HoldOptions{Backoff: time.Hour, Prefer: preferred.Load}, keep(&la))
		defer stopA()
		time.Sleep(5 * time.Second)
		if valid(&la) {
			t.Fatal("it was taken before its backoff is over")
		}
		preferred.Store(true)
		until(t, "who is preferred by now takes what it left to others", time.Second, func() bool { return valid(&la) })
	})
}

func TestHoldWithoutAServer(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		log, hook := logtest.NewNullLogger()
		a := join(t, s, claims.Options{Node: "a", Logger: log})
		if err := a.conn.JetStream().DeleteKeyValue(t.Context(), bucket); err != nil {
			t.Fatal(err)
		}
		var l atomic.Pointer[claims.Lease]
		stop := a.holding(t, claims.HoldOptions{}, keep(&l))
		time.Sleep(time.Minute)
		warnings := 0
		for _, e := range hook.AllEntries() {
			if e.Level == logrus.WarnLevel {
				warnings++
			}
		}
		if warnings != 1 {
			t.Fatalf("got %d warnings in a minute without a bucket, want 1", warnings)
		}
		makeBucket(t, a.conn)
		until(t, "it is taken", time.Second, func() bool { return valid(&l) })
		time.Sleep(time.Minute)
		stop()
	})
}

func TestHoldEndsWhileItWaits(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a, b := join(t, s, claims.Options{Node: "a"}), join(t, s, claims.Options{Node: "b"})
		a.take(t, key)
		stop := b.holding(t, claims.HoldOptions{}, func(context.Context, *claims.Lease) error {
			t.Error("called without the claim")
			return nil
		})
		other := b.holding(t, claims.HoldOptions{}, func(context.Context, *claims.Lease) error { return nil })
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		other()
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Fatalf("ended after %v, want at once", took)
		}
		if err := b.Hold(t.Context(), key, claims.HoldOptions{Backoff: -1}, nil); !errors.Is(err, claims.ErrInvalidOptions) {
			t.Fatalf("got %v, want %v", err, claims.ErrInvalidOptions)
		}
	})
}

// TestTwoContenders lets two processes fight for a key through 60 faults of the holder, and looks every 3 ms that
// never both may write, and that numbers grow.
//
// Twenty bubbles share the faults: under the race detector, Go 1.26 crashes when timers fire more than some 16,000 times in
// one bubble (golang/go#78156).
func TestTwoContenders(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, uint64(len(key))))
	for range 20 {
		contend(t, rng, 3)
	}
}

func contend(t *testing.T, rng *rand.Rand, rounds int) {
	t.Helper()
	const life, step = time.Second, 3 * time.Millisecond
	bubble(t, func(t *testing.T, s *embedded.Server) {
		type contender struct {
			*peer
			lease atomic.Pointer[claims.Lease]
			stop  func()
		}
		enter := func(node string) *contender {
			c := &contender{peer: join(t, s, claims.Options{Node: node, TTL: life})}
			c.stop = c.holding(t, claims.HoldOptions{Backoff: 50 * time.Millisecond}, keep(&c.lease))
			return c
		}
		two := [2]*contender{enter("a"), enter("b")}
		past := []*contender{}
		defer func() {
			var wg sync.WaitGroup
			for _, c := range append(past, two[:]...) {
				c.kill() // some cannot hear any more, and would wait for an answer
				wg.Go(c.stop)
			}
			wg.Wait()
		}()
		var number uint64
		watch := func(d time.Duration) (holder int) {
			holder = -1
			for range d / step {
				held := 0
				for i, c := range append(two[:], past...) {
					if !valid(&c.lease) {
						continue
					}
					held++
					if n := c.lease.Load().Number(); n > number {
						number, holder = n, i
					} else if n == number {
						holder = i
					} else {
						t.Fatalf("number %d is valid after %d", n, number)
					}
				}
				if held > 1 {
					t.Fatal("two leases are valid at once")
				}
				time.Sleep(step)
			}
			return holder
		}
		faults := map[string]int{}
		for round := range rounds {
			holder := watch(2*life + life/2)
			if holder < 0 || holder > 1 {
				t.Fatalf("round %d: nobody holds the key", round)
			}
			c := two[holder]
			renew := true
			switch fault := rng.IntN(6); fault {
			case 0:
				faults["killed"]++
				c.kill()
			case 1:
				faults["heard no more"]++
				c.wire.dumb.Store(true)
			case 2:
				faults["hears no more"]++
				c.wire.deaf.Store(true)
			case 3:
				faults["slow"]++
				c.wire.delay.Store(int64(life) * int64(1+rng.IntN(3)) / 2)
			case 4:
				faults["deaf for a moment"]++
				c.wire.deaf.Store(true)
				watch(time.Duration(rng.Int64N(int64(2 * life))))
				c.wire.deaf.Store(false)
				renew = false
			case 5:
				faults["stopped"]++
				c.stop()
			}
			if renew {
				past = append(past, c)
				two[holder] = enter(c.Node())
			}
		}
		t.Logf("faults: %v, last number %d", faults, number)
	})
}

func TestManyWaitersShareOneWatch(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a, b := join(t, s, claims.Options{Node: "a"}), join(t, s, claims.Options{Node: "b"})
		keys := []string{claims.Master, claims.Partition(0), claims.Partition(1), claims.Alarms(0)}
		var held []*claims.Lease
		for _, k := range keys {
			held = append(held, a.take(t, k))
		}
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		var got atomic.Int32
		for _, k := range keys {
			wg.Go(func() {
				_ = b.Hold(ctx, k, claims.HoldOptions{}, func(ctx context.Context, l *claims.Lease) error {
					if l.Key() != k {
						t.Errorf("got %s, want %s", l.Key(), k)
					}
					got.Add(1)
					<-ctx.Done()
					return nil
				})
			})
		}
		time.Sleep(time.Second)
		stream, err := a.conn.JetStream().Stream(t.Context(), "KV_"+bucket)
		if err != nil {
			t.Fatal(err)
		}
		if n := stream.CachedInfo().State.Consumers; n != 1 {
			t.Fatalf("got %d consumers for %d waiters, want 1", n, len(keys))
		}
		for _, l := range held {
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		if n := got.Load(); n != int32(len(keys)) {
			t.Fatalf("got %d of %d claims handed over", n, len(keys))
		}
		cancel()
		wg.Wait()
	})
}

func TestHeldErrorText(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, e := range map[string]*claims.HeldError{
		"claim master is held by n1 until 2026-01-02T03:04:05Z":              {Key: "master", Holder: "n1", Until: at},
		"claim master is held by an unknown node until 2026-01-02T03:04:05Z": {Key: "master", Until: at},
		"claim master is being taken by n1":                                  {Key: "master", Holder: "n1"},
	} {
		if !strings.HasPrefix(e.Error(), want) {
			t.Errorf("got %q, want %q", e, want)
		}
	}
}
