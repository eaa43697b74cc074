package audit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/ops/audit"
	"github.com/droverhq/drover/schemas"
	"github.com/sirupsen/logrus"
)

// What only people can mend is told, with names and times, and no longer when it is mended.
func TestTells(t *testing.T) {
	for _, tc := range []struct {
		name  string
		make  func(*house) (mend func())
		kinds []string
		says  []string
		wrong bool
	}{
		{"a partition without owner", func(h *house) func() {
			h.master()
			h.timers("t")
			h.broker("b1")()
			return func() { h.broker("b2") }
		}, []string{"partition-unowned"}, []string{`partition 0 has no owner; node "b1" owned it last, since 2000-01-01`, "start a server with the role broker"}, true},
		{"an owner that does not answer", func(h *house) func() {
			h.master()
			h.timers("t")
			lease, err := h.claims(h.conn, "hung").TryAcquire(h.t.Context(), "partition.0")
			if err != nil {
				h.t.Fatal(err)
			}
			return func() {
				if err := lease.Release(h.t.Context()); err != nil {
					h.t.Fatal(err)
				}
				h.broker("b")
			}
		}, []string{"owner-silent"}, []string{`node "hung" holds partition 0 and does not answer`}, true},
		{"alarms that nobody rings", func(h *house) func() {
			h.all()
			h.stops[1]() // the timers
			h.decider("order", upTo("TimerExpired", `[{"type":"ScheduleTimer","attributes":{"timerId":"tea","startToFireTimeout":60}}]`))
			h.start("o", "order")
			time.Sleep(70 * time.Second)
			return func() { h.timers("t2"); h.completes("o"); time.Sleep(3 * time.Second) }
		}, []string{"alarms-unowned", "alarms-overdue"}, []string{"nobody rings the alarms of partition 0", "partition 0 has 1 overdue alarm, the oldest since 2000-01-01", "start a server with the role timers"}, true},
		{"no master", func(h *house) func() {
			h.timers("t")
			h.broker("b")
			return func() { h.master(); time.Sleep(time.Second) }
		}, []string{"no-master"}, []string{"start a server with the role ops"}, false},
		{"logs that nobody reads", func(h *house) func() {
			h.master()
			h.timers("t")
			h.broker("b1")()
			h.publish(ns.Signal("o", "go"), "")
			h.publish(ns.In(0, "o", "pause"), "{}")
			time.Sleep(2 * time.Minute)
			return func() { h.broker("b2"); time.Sleep(5 * time.Second) }
		}, []string{"backlog", "partition-unowned"}, []string{"signals that nobody has dealt with since 2000-01-01", "the inbox of partition 0", "it has no owner"}, true},
		{"tasks without a worker", func(h *house) func() {
			h.all()
			h.decider("order", upTo("ActivitySuccess", "["+activityOf("a", "")+"]"))
			h.start("o", "order")
			time.Sleep(20 * time.Second)
			return func() { h.work(); h.completes("o"); time.Sleep(3 * time.Second) }
		}, []string{"tasks-wait"}, []string{`list "main" has 1 task since`, "no worker"}, false},
		{"a consumer that gives tasks up", func(h *house) func() {
			return h.changed(1, ns.Task("main", 0))
		}, []string{"consumer-changed"}, []string{`list "main" has consumers that give a task up after so many deliveries (max_deliver): workers`, "nats consumer rm"}, true},
		{"a task that no consumer takes", func(h *house) func() {
			return h.changed(-1, ns.Task("other", 0))
		}, []string{"consumer-changed"}, []string{`list "main" has tasks that no consumer takes: ` + ns.Task("main", 0), "start a worker of the list again"}, true},
		{"a consumer that was deleted (E2), which is mended after the question", func(h *house) func() {
			h.all()
			if err := topology.EnsureList(h.t.Context(), h.conn, ns, "main", topology.ListOptions{}); err != nil {
				h.t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			if err := h.conn.JetStream().DeleteConsumer(h.t.Context(), ns.StreamTasks("main"), subject.ConsumerLow); err != nil {
				h.t.Fatal(err)
			}
			return func() {}
		}, []string{"consumer-changed+"}, []string{`list "main" lacks consumers: workers-low; somebody has deleted them`}, false},
		{"a type without a decider", func(h *house) func() {
			h.all()
			for i := range 3 {
				h.start(fmt.Sprintf("o%d", i), "order")
			}
			time.Sleep(3*time.Second + 500*time.Millisecond)
			return func() {
				h.decider("order", func(func(string) bool) string { return complete })
				time.Sleep(3 * time.Second)
			}
		}, []string{"no-decider"}, []string{`no decider of type "order" listens: 3 runs wait for one, workflow "o0" longest`}, false},
		{"a parked run", func(h *house) func() {
			h.all()
			good := false
			h.decider("order", func(func(string) bool) string {
				if good {
					return complete
				}
				return `[{"type":"Nonsense"}]`
			})
			h.start("o", "order")
			h.await("o", "WorkflowPaused")
			return func() {
				good = true
				h.api("resume", `{"workflowId":"o"}`)
				h.completes("o")
				time.Sleep(3 * time.Second)
			}
		}, []string{"parked"}, []string{`"o" is parked: the decider failed 10 times in a row`, "drover resume o"}, false},
		{"an activity that nobody goes on with", func(h *house) func() {
			h.all()
			h.decider("order", upTo("ActivityTimedOut", "["+activityOf("a", `,"startToCloseTimeout":90`)+"]"))
			h.start("o", "order")
			h.take().report(h, "started")
			time.Sleep(30 * time.Second)
			return func() {
				h.completes("o")
				h.delete(ns.StreamTasks("main"), 1)
				time.Sleep(3 * time.Second)
			}
		}, []string{"nobody-goes-on", "tasks-wait"}, []string{`activity "a" of workflow "o" runs on worker 1 since`, "has no worker to go on; it times out at"}, false},
		{"a history that is nearly full", func(h *house) func() { // R3
			h.master()
			h.timers("t")
			h.broker("b", func(o *broker.Options) { o.Execution.MaxEvents = 5 })
			h.decider("order", upTo("Signal", `[{"type":"ScheduleTimer","attributes":{"timerId":"tea","startToFireTimeout":600}}]`))
			h.start("o", "order")
			time.Sleep(5 * time.Second)
			return func() { h.signal("o", "go"); h.completes("o"); time.Sleep(3 * time.Second) }
		}, []string{"nears-limit"}, []string{`"o" of type "order" is terminated after 100 more events`, "drover why o"}, false},
		{"a run that waits for nothing", func(h *house) func() {
			h.all()
			h.decider("order", upTo("Signal", "[]"))
			h.start("o", "order")
			time.Sleep(5 * time.Second)
			return func() { h.signal("o", "go"); h.completes("o"); time.Sleep(3 * time.Second) }
		}, []string{"waits-for-nothing"}, []string{`"o" of type "order" has nothing open: only a signal or an operator can move it, and it times out at 2000-12-31`}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, h *house) {
				mend := tc.make(h)
				time.Sleep(4 * time.Second) // what has just changed is not judged
				a := h.auditor()
				r := h.pass(a)
				h.wantKinds(r, tc.kinds...)
				var text strings.Builder
				for _, f := range r.Findings {
					fmt.Fprintln(&text, f.Text)
				}
				for _, part := range tc.says {
					if !strings.Contains(text.String(), part) {
						t.Errorf("the findings do not say %q:\n%s", part, text.String())
					}
				}
				if r.OK() == tc.wrong {
					t.Errorf("OK is %v: %+v", r.OK(), r.Findings)
				}
				mend()
				h.wantKinds(h.pass(a))
			})
		})
	}
}

// changed has somebody change the consumer of a list; the list is made again to mend it.
func (h *house) changed(maxDeliver int, takes string) (mend func()) {
	h.t.Helper()
	h.all()
	ensure := func() {
		if err := topology.EnsureList(h.t.Context(), h.conn, ns, "main", topology.ListOptions{}); err != nil {
			h.t.Fatal(err)
		}
	}
	ensure()
	h.decider("order", upTo("ActivitySuccess", "["+activityOf("a", "")+"]"))
	h.start("o", "order")
	time.Sleep(time.Second)
	js := h.conn.JetStream()
	consumer, err := js.Consumer(h.t.Context(), ns.StreamTasks("main"), topology.Consumer)
	if err != nil {
		h.t.Fatal(err)
	}
	c := consumer.CachedInfo().Config
	c.MaxDeliver, c.FilterSubject, c.FilterSubjects = maxDeliver, takes, nil
	if _, err := js.UpdateConsumer(h.t.Context(), ns.StreamTasks("main"), c); err != nil {
		h.t.Fatal(err)
	}
	return func() { ensure(); h.work(); h.completes("o"); time.Sleep(3 * time.Second) }
}

// A busy namespace in which all is well gives no finding, however often it is looked at.
func TestBusyNamespaceIsClean(t *testing.T) {
	virtually(t, 4, func(t *testing.T, h *house) {
		h.all()
		for _, list := range []string{"main", "other"} {
			if err := topology.EnsureList(t.Context(), h.conn, ns, list, topology.ListOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		h.workers()
		const n = 200
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range n {
				h.start(fmt.Sprintf("o%d", i), "order")
				time.Sleep(100 * time.Millisecond)
			}
		})
		time.Sleep(5 * time.Second)
		a := h.auditor()
		looked := 0
		for range 8 {
			r := h.pass(a)
			h.wantKinds(r)
			looked += r.Runs + r.Tasks + r.Alarms
			if r.Undecided > 0 {
				t.Errorf("%d undecided", r.Undecided)
			}
			time.Sleep(730 * time.Millisecond)
		}
		wg.Wait()
		if looked == 0 {
			t.Fatal("nothing was looked at")
		}
		for i := range n {
			h.completes(fmt.Sprintf("o%d", i))
		}
		time.Sleep(5 * time.Second)
		h.wantKinds(h.pass(a))
	})
}

// workers run orders: two activities, one of which fails first, a timer, and a child with an activity.
func (h *house) workers() {
	h.t.Helper()
	deciders := decider.New(h.conn, nil)
	deciders.Register("order", decider.Func(func(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
		v, err := t.View(ctx)
		if err != nil {
			return nil, err
		}
		quick, _, _ := v.Activity("quick")
		slow, _, _ := v.Activity("slow")
		switch {
		case quick == 0:
			return []schemas.Decision{
				decider.Schedule("quick", "quick", nil, decider.List("main")),
				decider.Schedule("slow", "slow", nil, decider.List("other"), decider.Retry(schemas.RetryPolicy{InitialInterval: schemas.Seconds(1), MaximumAttempts: 5})),
				decider.Timer("tea", 3*time.Second), decider.StartChild(t.Execution().WorkflowID+"-kid", "kid", nil),
			}, nil
		case quick.Closed() && slow.Closed() && v.Timer("tea") == decider.TimerFired && v.ChildrenDone(t.Execution().WorkflowID+"-kid"):
			return []schemas.Decision{decider.Complete(nil)}, nil
		}
		return nil, nil
	}))
	deciders.Register("kid", decider.Func(func(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
		v, err := t.View(ctx)
		if err != nil {
			return nil, err
		}
		switch status, _, _ := v.Activity("quick"); {
		case status == 0:
			return []schemas.Decision{decider.Schedule("quick", "quick", nil, decider.List("main"))}, nil
		case status.Closed():
			return []schemas.Decision{decider.Complete(nil)}, nil
		}
		return nil, nil
	}))
	h.run(deciders, func() {})
	w := activity.New(h.conn, &activity.Options{Lists: []string{"main", "other"}, Concurrency: 40})
	activity.Register(w, "quick", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil })
	activity.Register(w, "slow", func(ctx context.Context, _ struct{}) (struct{}, error) {
		if activity.Info(ctx).Attempt == 1 {
			return struct{}{}, errors.New("not yet")
		}
		time.Sleep(2 * time.Second)
		return struct{}{}, nil
	})
	h.run(w, func() {})
}

// The master's audit looks by itself, and logs a finding once when it comes and once when it is gone.
func TestRunLogsOnce(t *testing.T) {
	virtually(t, 1, func(t *testing.T, h *house) {
		h.all()
		var mu sync.Mutex
		var passes []bool
		log := &lines{}
		h.log.AddHook(log)
		a := h.auditor(func(o *audit.Options) {
			o.Observer = func(r *audit.Report) { mu.Lock(); defer mu.Unlock(); passes = append(passes, r.Full) }
		})
		h.run(a, func() {})
		h.decider("order", upTo("ActivitySuccess", "["+activityOf("a", "")+"]"))
		h.start("o", "order")
		h.delete(ns.StreamTasks("main"), h.take().seq)
		time.Sleep(11*time.Minute + 30*time.Second)
		h.work()
		h.completes("o")
		time.Sleep(10 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if want := []bool{true, false, false, false, false, false, false, false, false, false}; len(passes) < 20 || !slices.Equal(passes[:10], want) || !passes[10] && !passes[11] {
			t.Fatalf("passes (full or not): %v", passes)
		}
		log.want(t, "has no task there: the open effects of workflow \"o\" were repeated", 1)
		log.want(t, "audit: list \"main\" has 1 task since", 1)
		log.want(t, "audit: no longer: list \"main\" has 1 task since", 1)
	})
}

// Nobody answers for a workflow: the streams tell why.
func TestUnserved(t *testing.T) {
	virtually(t, 1, func(t *testing.T, h *house) {
		stop := h.broker("b")
		h.start("o", "order")
		said := func() string {
			text, err := audit.Unserved(t.Context(), h.conn, ns, 1, "o")
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		if got, want := said(), `node "b" holds its partition 0 since 2000-01-01T00:00:00`; !strings.HasPrefix(got, want) {
			t.Fatalf("got %s, want %s…", got, want)
		}
		stop()
		if got, want := said(), `its partition 0 has no owner; node "b" owned it last, since 2000-01-01T00:00:00`; !strings.HasPrefix(got, want) {
			t.Fatalf("got %s, want %s…", got, want)
		}
		if _, err := audit.Unserved(t.Context(), h.conn, ns, 1, "nobody"); !errors.Is(err, natsconn.ErrNotFound) {
			t.Fatalf("got %v for a workflow that was never started", err)
		}
	})
}

func TestOptions(t *testing.T) {
	virtually(t, 1, func(t *testing.T, h *house) {
		good := audit.Options{Conn: h.conn, Namespace: ns, Partitions: 1, Claims: h.claims(h.conn, "x")}
		if _, err := audit.New(good); err != nil {
			t.Fatal(err)
		}
		for field, spoil := range map[string]func(*audit.Options){
			"Conn":       func(o *audit.Options) { o.Conn = nil },
			"Claims":     func(o *audit.Options) { o.Claims = nil },
			"Partitions": func(o *audit.Options) { o.Partitions = 0 },
			"Confirm":    func(o *audit.Options) { o.Confirm = time.Millisecond },
			"Stuck":      func(o *audit.Options) { o.Stuck = -1 },
			"Rate":       func(o *audit.Options) { o.Rate = -1 },
			"FullEvery":  func(o *audit.Options) { o.FullEvery = time.Second },
			"Namespace":  func(o *audit.Options) { o.Namespace = "a.b" },
		} {
			o := good
			spoil(&o)
			if _, err := audit.New(o); !errors.Is(err, audit.ErrInvalidOptions) || !strings.Contains(err.Error(), field) {
				t.Errorf("%s: got %v", field, err)
			}
		}
	})
}

// lines collects what is logged.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Levels() []logrus.Level { return logrus.AllLevels }

func (l *lines) Fire(e *logrus.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e.Message)
	return nil
}

func (l *lines) want(t *testing.T, part string, times int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.all {
		if strings.Contains(line, part) {
			n++
		}
	}
	if n != times {
		t.Errorf("%d lines say %q, want %d:\n%s", n, part, times, strings.Join(l.all, "\n"))
	}
}
