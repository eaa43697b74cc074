package broker_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

const once = `,"notIdempotent":true`

// askStraight asks the owner itself whether an offer may begin, and tells whether it said yes.
func (t *task) askStraight(nonce string) bool {
	t.f.t.Helper()
	return t.f.hand(direct(t.Beat), `{"token":"`+t.Token+`","kind":"begin","identity":"w-1","nonce":"`+nonce+`"}`)
}

// offeredOnce is [fleet.offered] for tasks that must not run twice.
func (f *fleet) offeredOnce() (k *task, a *node) {
	f.t.Helper()
	a = f.node("a", nil)
	f.decider("order", two(once))
	offers := f.idle()
	f.start(startO)
	f.quick()
	if k = f.opened(<-offers); k.ActivityID != "b" || !k.NotIdempotent {
		f.t.Fatalf("got the task of %q, ask first: %t, want that of b, to be asked for", k.ActivityID, k.NotIdempotent)
	}
	return k, a
}

// holding is worker w-1 as long as it is at its work; end ends it.
func (f *fleet) holding() (end func()) {
	f.t.Helper()
	sub, err := f.nc.Subscribe(ns.Control("w-1"), func(m *nats.Msg) {
		if err := m.Respond([]byte(`{"node":"w-1","holds":true}`)); err != nil {
			f.t.Error(err)
		}
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.flush()
	return func() {
		if err := sub.Unsubscribe(); err != nil {
			f.t.Fatal(err)
		}
	}
}

// A task that must not run twice is offered as any other, and begins once its owner has the start in the history. Nobody else may begin then.
func TestTaskThatMustNotRunTwiceIsOffered(t *testing.T) { // P-7
	virtually(t, 1, func(t *testing.T, f *fleet) {
		k, _ := f.offeredOnce()
		if !k.askStraight("n1") {
			t.Fatal("the question was not answered with yes")
		}
		f.await("o", schemas.EventActivityStarted)
		for _, nonce := range []string{"n1", "n2"} { // the inbox tells which of them it was
			if k.askStraight(nonce) {
				t.Fatalf("%s was told yes when the attempt had begun", nonce)
			}
		}
		if p := k.begin("n2"); p.Go || !p.Leave {
			t.Fatalf("got %+v for another worker, want it left to the first", p)
		}
		if p := k.begin("n1"); !p.Go || p.Token != k.Token {
			t.Fatalf("got %+v for the same delivery, want yes", p)
		}
		f.success(k, time.Millisecond)
		f.completes("o")
		time.Sleep(10 * time.Second)
		f.wantTypes("o", twoActivities...)
		if n := f.stored(); n != 1 {
			t.Fatalf("got %d messages of tasks, want that of the first alone", n)
		}
	})
}

// A worker that dies before it has asked costs a second. One that dies after its start ends an activity that must not run twice: whoever is given
// the message leaves it until the worker does not answer.
func TestWorkerDiesWithAnOfferThatMustNotRunTwice(t *testing.T) { // P-7, S3-05
	for _, begun := range []bool{false, true} {
		t.Run(fmt.Sprintf("begun %t", begun), func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				lost, _ := f.offeredOnce()
				end := f.holding()
				if begun && !lost.askStraight("n1") {
					t.Fatal("the question was not answered with yes")
				}
				began := time.Now()
				held := f.pull()
				if took := time.Since(began); held.Token != lost.Token || !held.NotIdempotent || took > 1100*time.Millisecond {
					t.Fatalf("got %s after %v, ask first: %t, want the message of %s within a second", held.Token, took, held.NotIdempotent, lost.Token)
				}
				if !begun {
					if p := held.begin("n2"); !p.Go {
						t.Fatalf("got %+v, want yes", p)
					}
					held.success()
					f.completes("o")
					f.wantTypes("o", twoActivities...)
					return
				}
				for range 3 {
					if p := held.begin("n2"); p.Go || !p.Leave {
						t.Fatalf("got %+v, want it left while the worker answers", p)
					}
					held = f.pull()
				}
				end()
				if p := held.begin("n2"); p.Go || !p.Leave {
					t.Fatalf("got %+v, want it left until the worker is known to be lost", p)
				}
				f.await("o", schemas.EventActivityFailed)
				f.await("o", schemas.EventActivityInterrupted)
				if p := held.begin("n2"); p.Go || p.Leave {
					t.Fatalf("got %+v, want the message dropped", p)
				}
				if n := f.stored(); n != 2 {
					t.Fatalf("got %d messages of tasks, want that of the first and that of the offer", n)
				}
			})
		})
	}
}

// The message that is stored while a worker is at an offer goes with the outcome, and there is one, whichever way the start came into the history.
func TestMessageLaterABegunOffer(t *testing.T) { // P-7
	for _, more := range []string{"", once} {
		t.Run(more, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				var k *task
				if more == once {
					if k, _ = f.offeredOnce(); !k.askStraight("n1") {
						t.Fatal("the question was not answered with yes")
					}
				} else {
					k, _, _ = f.offered()
					k.report("started", `,"identity":"w-1","nonce":"n1","offered":true,"elapsed":"50ms"`)
				}
				defer f.holding()()
				time.Sleep(5 * time.Second)
				if copied, n := f.taskAt(2), f.stored(); copied.Token != k.Token || n != 2 {
					t.Fatalf("got %s and %d messages, want that of the offer, once", copied.Token, n)
				}
				f.success(k, 5*time.Second)
				f.completes("o")
				time.Sleep(time.Second)
				f.wantTypes("o", twoActivities...)
				if _, err := f.post.GetSeq(t.Context(), ns.StreamTasks("main"), 2); !errors.Is(err, natsconn.ErrNotFound) {
					t.Fatalf("got %v for the message, want it gone", err)
				}
			})
		})
	}
}

// A worker that stood still comes to an offer when its message is on the list, and asks. If it is told yes that message stays: without it nobody
// would miss the worker.
func TestLateOfferKeepsItsMessage(t *testing.T) { // P-7
	virtually(t, 1, func(t *testing.T, f *fleet) {
		k, _, _ := f.offered()
		held := f.pull()
		if p := k.begin("n1"); !p.Go {
			t.Fatalf("got %+v for the worker of the offer, want yes", p)
		}
		if p := held.begin("n2"); p.Go || !p.Leave {
			t.Fatalf("got %+v for the message, want it left", p)
		}
		next := f.pull() // nobody answers for the worker
		if p := next.begin("n3"); !p.Go || p.Attempt != 2 {
			t.Fatalf("got %+v, want the second attempt", p)
		}
		next.success()
		f.completes("o")
		f.await("o", schemas.EventActivityInterrupted)
	})
}

// The owner dies when it has stored the start, and before it says so. The worker asks the next one, by way of the inbox and with the same nonce.
func TestOwnerDiesWithAQuestion(t *testing.T) { // P-7
	for _, stored := range []bool{false, true} {
		t.Run(fmt.Sprintf("stored %t", stored), func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				cut := map[bool]cutwire.Verdict{false: cutwire.CutBefore, true: cutwire.CutAfter}[stored]
				var armed atomic.Bool
				a := f.node("a", func(subj string, _ []byte) cutwire.Verdict {
					if armed.Load() && strings.HasPrefix(subj, "drover.default.history.0.o.") {
						return cut
					}
					return cutwire.Pass
				})
				f.decider("order", two(once))
				offers := f.idle()
				f.start(startO)
				f.quick()
				k := f.opened(<-offers)
				defer f.holding()()
				armed.Store(true)
				if k.askStraight("n1") {
					t.Fatal("yes from an owner that is dead")
				}
				a.waitKilled()
				f.node("b", nil)
				if p := k.begin("n1"); !p.Go || p.Token != k.Token {
					t.Fatalf("got %+v from the next owner, want yes", p)
				}
				if p := k.begin("n2"); p.Go {
					t.Fatalf("got %+v for another worker, want no", p)
				}
				for len(offers) > 0 { // the next owner has repeated it
					if o := f.opened(<-offers); o.askStraight("n3") {
						t.Fatal("the task begins twice")
					}
				}
				f.success(k, time.Millisecond)
				f.completes("o")
				f.wantTypes("o", twoActivities...)
			})
		})
	}
}

// An owner that leaves answers no more questions, and leaves no offer after that has begun.
func TestOwnerLeavesWithABegunOffer(t *testing.T) { // P-7, S2-1
	virtually(t, 1, func(t *testing.T, f *fleet) {
		k, a := f.offeredOnce()
		if !k.askStraight("n1") {
			t.Fatal("the question was not answered with yes")
		}
		defer f.holding()()
		a.stop()
		held := f.pull()
		if held.Token != k.Token || !held.NotIdempotent {
			t.Fatalf("got %s, ask first: %t, want the message of the offer", held.Token, held.NotIdempotent)
		}
		f.node("b", nil)
		if p := held.begin("n2"); p.Go || !p.Leave {
			t.Fatalf("got %+v, want it left to the worker that has begun", p)
		}
		f.success(k, time.Millisecond)
		f.completes("o")
		f.wantTypes("o", twoActivities...)
	})
}
