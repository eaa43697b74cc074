package decider_test

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/broker/nearby"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// keeper is a decider that wants to know when its worker stops.
type keeper struct {
	t       *testing.T
	takes   time.Duration
	panics  bool
	running atomic.Int64
	decided atomic.Int64
	stopped atomic.Int64
}

func (k *keeper) Decide(context.Context, *decider.Task) ([]schemas.Decision, error) {
	k.running.Add(1)
	defer k.running.Add(-1)
	time.Sleep(k.takes)
	k.decided.Add(1)
	return nil, nil
}

func (k *keeper) Stop() {
	if n := k.running.Load(); n != 0 {
		k.t.Errorf("it is told of the stop while %d decisions are made", n)
	}
	k.stopped.Add(1)
	if k.panics {
		panic("ouch")
	}
}

// A decider is told that its worker has stopped, after its last decision, once for each type and source that it has, at each Run.
// sdk-go#2582.
func TestDeciderIsToldOfTheStop(t *testing.T) {
	for _, panics := range []bool{false, true} {
		inBubble(t, func(t *testing.T, h *house) {
			k := &keeper{t: t, takes: 2 * time.Second, panics: panics}
			log, lines := logtest.NewNullLogger()
			conn := h.dial()
			w := decider.New(conn, &decider.Options{Logger: log})
			w.Register("order", k)
			w.Register("other", decider.Func(nothing))
			w.Follow(told(make(chan []string)), k)
			for n := int64(1); n <= 2; n++ {
				r := h.runWorker(conn, w)
				h.ask(first())
				if got := k.stopped.Load(); got != 2*(n-1) {
					t.Fatalf("run %d: told %d times while it goes on", n, got)
				}
				h.send(ns.Decide("order"), encoded(t, first()), "one")
				time.Sleep(time.Second)
				r.stop()
				if err := r.wait(t); err != nil {
					t.Fatalf("run %d: %v", n, err)
				}
				h.receive()
				if stopped, decided := k.stopped.Load(), k.decided.Load(); stopped != 2*n || decided != 2*n {
					t.Fatalf("run %d: told %d times after %d decisions, want %d of both", n, stopped, decided, 2*n)
				}
			}
			logged := 0
			for _, e := range lines.AllEntries() {
				if text, _ := e.Data["err"].(string); strings.Contains(text, "ouch") {
					logged++
				}
			}
			if want := map[bool]int{true: 4}[panics]; logged != want {
				t.Errorf("%d panics are logged, want %d", logged, want)
			}
		})
	}
}

// alone is a decider that shares no goroutine with activities.
type alone struct {
	decider.Func
	apart bool
}

func (a alone) Apart() bool { return a.apart }

// goroutine is the name of the running one.
func goroutine() string {
	b := make([]byte, 64)
	name, _, _ := bytes.Cut(b[:runtime.Stack(b, false)], []byte(" ["))
	return string(name)
}

// A decision with an outcome is made on the goroutine that did the work, unless the decider wants to be apart. What it does to its goroutine
// then is no matter of the activity.
func TestDeciderApart(t *testing.T) { // P-11
	for name, c := range map[string]struct{ able, apart, exits bool }{
		"as any other":                  {},
		"able, and does not want to":    {able: true},
		"apart":                         {able: true, apart: true},
		"apart, and ends its goroutine": {able: true, apart: true, exits: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				var on string
				f := decider.Func(func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
					if task.StartedID() == 3 {
						return []schemas.Decision{decider.Schedule("a", "work", nil, decider.List("main"))}, nil
					}
					on = goroutine()
					if c.exits {
						runtime.Goexit()
					}
					return []schemas.Decision{decider.Marker("m", nil)}, nil
				})
				var d decider.Decider = f
				if c.able {
					d = alone{f, c.apart}
				}
				conn, w := h.dial(), &hands{errands: make(chan nearby.Errand, 1)}
				worker := decider.New(conn, nil)
				worker.Register("order", d)
				r := h.runWorker(conn, worker)
				t.Cleanup(nearby.On(r.conn).Register(nearby.List{Namespace: string(ns), Name: "main"}, w))
				reply := h.ask(window(long(3, 3), 0))
				h.sendAhead(aheadTask(reply), reply.Sticky)
				_, decide, err := (<-w.errands).Open()
				if err != nil {
					t.Fatal(err)
				}
				var ahead *schemas.AheadDecision
				var elsewhere bool
				var activity string
				done := make(chan struct{})
				go func() { // the activity's
					defer close(done)
					activity = goroutine()
					ahead, elsewhere = decide(success(), func() { t.Error("the outcome is told by another") })
				}()
				select {
				case <-done:
				case <-time.After(time.Minute):
					t.Fatal("no answer within a minute")
				}
				if (ahead == nil) != c.exits || elsewhere {
					t.Errorf("got decision %+v, told by another: %v", ahead, elsewhere)
				}
				if same := on == activity; on == "" || same == c.apart {
					t.Errorf("decided on %s, and the activity ran on %s; want another: %v", on, activity, c.apart)
				}
				time.Sleep(time.Second)
			})
		})
	}
}
