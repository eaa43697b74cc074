package broker_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// A run that has slept goes back to the worker that decided last, in the encoding that this worker wants, unless the partition has many
// questions open or the worker is gone: then it is asked of anybody, as the first time.
func TestSleepersGoBackToTheirWorker(t *testing.T) {
	const runs, most = 100, 64 // mostPreferred
	for name, c := range map[string]struct {
		awake func(f *fleet, p *player) // while they sleep
		tell  func(f *fleet)            // wakes all of them
		keeps bool                      // their worker answers late
		// back is how many are asked of their worker, and anybody how many of anybody.
		back, anybody int
	}{
		"one by one": {tell: oneByOne(runs), back: runs},
		"all at once": {
			awake: func(f *fleet, p *player) {
				if err := p.subs[0].Unsubscribe(); err != nil { // it takes only its own from here on
					f.t.Fatal(err)
				}
				f.flush()
			},
			tell: signalAll(runs), keeps: true, back: most, anybody: runs - most,
		},
		"to one that has said that it leaves": {
			awake: func(f *fleet, p *player) {
				p.leave()
				if err := f.nc.Publish(ns.Announce("order"), p.pack(&schemas.Announcement{Type: "order", Left: p.name})); err != nil {
					f.t.Fatal(err)
				}
				f.flush()
			},
			tell: signalAll(runs), anybody: runs,
		},
		"to one that hangs": {
			awake: func(f *fleet, p *player) {
				if err := p.subs[0].Unsubscribe(); err != nil {
					f.t.Fatal(err)
				}
				p.keeps(1, func() { f.publish("drover.default.signal.w0.go", "") })
				if got := f.result("w0"); got != "completed" { // by the other one, after the deadline
					f.t.Fatal(got)
				}
			},
			tell: signalAll(runs), anybody: runs - 1,
		},
		"to one that is slow": {
			awake: func(f *fleet, p *player) {
				if err := p.subs[0].Unsubscribe(); err != nil {
					f.t.Fatal(err)
				}
				p.keeps(1, func() { f.publish("drover.default.signal.w0.go", "") })
				time.Sleep(time.Second) // longer than a record waits
				p.answerFrom(f.t)
			},
			tell: oneByOne(runs), anybody: 2, back: runs - 3, // until somebody is in time: of two one is not waited for
		},
		"to one that is gone": {awake: func(_ *fleet, p *player) { p.leave() }, tell: oneByOne(runs), back: runs, anybody: runs},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				var back, anybody atomic.Int64
				f.node("a", func(subj string, body []byte) cutwire.Verdict {
					json := strings.HasPrefix(string(body), "{")
					switch {
					case subj == ns.DecideSticky("order", "w1") && !json:
						back.Add(1)
					case subj == ns.Decide("order") && json:
						anybody.Add(1)
					case strings.HasPrefix(subj, ns.Decide("order")) && !strings.Contains(subj, ".alive-"):
						t.Errorf("%s was sent %q", subj, body)
					}
					return cutwire.Pass
				}, func(o *broker.Options) { o.CachedRuns = 1 })
				once := func(task *schemas.DecisionTask, _ int) []schemas.Decision {
					if has(task, schemas.EventSignal) {
						return []schemas.Decision{decider.Complete("done")}
					}
					return nil
				}
				p := f.plays("w1", once)
				p.lives()
				f.starts(runs)
				time.Sleep(time.Minute)
				f.plays("w2", once)
				if c.awake != nil {
					c.awake(f, p)
					time.Sleep(time.Second) // the owner has heard of it
				}
				back.Store(0)
				anybody.Store(0)
				if c.keeps {
					p.keeps(c.back, func() { c.tell(f) })
					for n := 0; int(anybody.Load()) < c.anybody && n < 1000; n++ {
						time.Sleep(time.Millisecond)
					}
					p.answerFrom(t)
				} else {
					c.tell(f)
				}
				for i := range runs {
					f.completes(fmt.Sprintf("w%d", i))
				}
				if b, a := int(back.Load()), int(anybody.Load()); b != c.back || a != c.anybody {
					t.Errorf("got %d questions to their worker and %d to anybody, want %d and %d", b, a, c.back, c.anybody)
				}
			})
		})
	}
}

func oneByOne(n int) func(*fleet) {
	return func(f *fleet) {
		for i := range n {
			f.publish(fmt.Sprintf("drover.default.signal.w%d.go", i), "")
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func signalAll(n int) func(*fleet) {
	return func(f *fleet) {
		for i := range n {
			f.publish(fmt.Sprintf("drover.default.signal.w%d.go", i), "")
		}
	}
}
