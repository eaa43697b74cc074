package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/signals"
)

// The roles of the reference workflow. Each is a process of its own with a wire of its own. The timer worker is in the
// broker's process.
const (
	roleBroker   = "broker"
	roleDecider  = "decider"
	roleActivity = "activity"
	roleClient   = "client"
)

var roles = []string{roleBroker, roleDecider, roleActivity, roleClient}

// reference is a workflow that uses everything, and the processes that carry it: activities idempotent and not, a retry, a
// cancel, timers, a child, a signal and a cancel request to other workflows, a continuation, signals by API and by publish,
// a payload in the object store.
type reference struct {
	*fleet
	judge map[string]func(string, []byte) cutwire.Verdict // by role; taken from it when the first process of the role starts
	delay time.Duration

	once   atomic.Int64 // how often the activity ran that must not run twice
	lost   atomic.Int64 // answers that were lost
	over   atomic.Bool  // what is judged is over
	ending sync.WaitGroup
	end    context.CancelFunc
	ctx    context.Context
}

const pad = 280 << 10 // goes to the object store

// refer starts the processes. One that a verdict kills, or that cannot begin, is replaced at once, as a supervisor does.
func refer(f *fleet, judge map[string]func(string, []byte) cutwire.Verdict) *reference {
	f.t.Helper()
	r := &reference{fleet: f, judge: judge, delay: 5 * time.Second}
	r.ctx, r.end = context.WithCancel(context.Background())
	if _, err := f.nc.Subscribe(cutwire.Lost, func(*nats.Msg) { r.lost.Add(1) }); err != nil {
		f.t.Fatal(err)
	}
	f.flush()
	first := f.node("a", r.judged(roleBroker))
	first.wire.Delay(r.delay)
	r.ending.Go(func() {
		select {
		case <-first.wire.Killed():
		case <-first.failed: // it says why and ends, as "drover server" does
		case <-r.ctx.Done():
			return
		}
		first.stop()
		f.node("b", nil)
	})
	r.serve(roleDecider, r.deciders)
	r.serve(roleActivity, r.activities)
	return r
}

// judged is the judge of a role's first process, silent once what is judged is over.
func (r *reference) judged(role string) func(string, []byte) cutwire.Verdict {
	judge := r.judge[role]
	if judge == nil {
		return nil
	}
	return func(subj string, body []byte) cutwire.Verdict {
		if r.over.Load() {
			return cutwire.Pass
		}
		return judge(subj, body)
	}
}

// serve keeps one process of a role alive.
func (r *reference) serve(role string, run func(context.Context, *drover.Client) error) {
	judge := r.judged(role)
	r.ending.Go(func() {
		for r.ctx.Err() == nil {
			r.process(role, judge, func(ctx context.Context, c *drover.Client) {
				if err := run(ctx, c); err != nil && ctx.Err() == nil {
					r.log.WithError(err).Warn(role)
					time.Sleep(time.Second)
				}
			})
			judge = nil
		}
	})
}

// process calls run on a wire of its own; ctx ends when that is killed.
func (r *reference) process(name string, judge func(string, []byte) cutwire.Verdict, run func(context.Context, *drover.Client)) {
	wire := cutwire.New(r)
	wire.Delay(r.delay)
	if judge != nil {
		wire.Judge(judge)
	}
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	go func() {
		select {
		case <-wire.Killed():
			cancel()
		case <-ctx.Done():
		}
	}()
	conn, err := natsconn.Dial(ctx, natsconn.Options{InProcess: wire, Name: name, Logger: r.log})
	if err != nil {
		if ctx.Err() == nil {
			r.t.Errorf("%s: %v", name, err)
		}
		return
	}
	defer conn.Close()
	c, err := drover.Connect(ctx, &drover.Options{Conn: conn.NATS(), Name: name, Logger: r.log, Timeout: 40 * time.Second})
	if err != nil {
		r.t.Errorf("%s: %v", name, err)
		return
	}
	run(ctx, c)
}

func (r *reference) deciders(ctx context.Context, c *drover.Client) error {
	d := c.Deciders(&decider.Options{DrainTimeout: time.Second})
	d.Register("order", decider.Func(decideOrder))
	d.Register("kid", decider.Func(func(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
		v, err := t.View(ctx)
		if err != nil || len(v.Signals("go")) == 0 {
			return nil, err
		}
		return []schemas.Decision{decider.Complete("grown")}, nil
	}))
	d.Register("peer", decider.Func(func(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
		v, err := t.View(ctx)
		if err != nil || !v.CancelRequested() {
			return nil, err
		}
		return []schemas.Decision{decider.Cancel("as asked")}, nil
	}))
	return d.Run(ctx)
}

// decideOrder looks at the whole history, so that it does not matter how often and when it is asked.
func decideOrder(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
	v, err := t.View(ctx)
	if err != nil {
		return nil, err
	}
	if v.ContinuedRun() != "" {
		if len(v.Signals("finish")) > 0 {
			return []schemas.Decision{decider.Complete(v.Input())}, nil
		}
		return nil, nil
	}
	status, _, _ := v.Activity("measure")
	kid := v.Child("kid")
	switch {
	case status == 0:
		return []schemas.Decision{
			decider.Marker("begun", "yes"),
			decider.Schedule("measure", "measure", v.Input()),
			decider.Schedule("once", "once", nil, decider.NotIdempotent()),
			decider.Schedule("flaky", "flaky", nil, decider.Retry(schemas.RetryPolicy{InitialInterval: schemas.Seconds(1), MaximumAttempts: 5})),
			decider.Schedule("slow", "slow", nil),
			decider.StartChild("kid", "kid", nil),
			decider.Timer("never", time.Hour), decider.Timer("tick", 2*time.Second),
		}, nil
	case v.Timer("tick") == decider.TimerFired && kid.Status != decider.ChildStarted && !kid.Status.Closed():
		return []schemas.Decision{decider.Timer("tick", 2*time.Second)}, nil // the child may be late
	case v.Timer("tick") == decider.TimerFired && v.Timer("never") == decider.TimerOpen:
		return []schemas.Decision{
			decider.CancelTimer("never"), decider.CancelActivity("slow"),
			decider.SignalExternal("kid", "go", 7), decider.CancelExternal("peer"),
		}, nil
	case v.Done("measure", "once", "flaky", "slow") && v.ChildrenDone("kid") && len(v.Signals("api")) > 0 && len(v.Signals("published")) > 0:
		got := map[string]string{"kid": string(kid.Result)}
		for _, id := range []string{"measure", "once", "flaky", "slow"} {
			status, result, reason := v.Activity(id)
			got[id] = strings.TrimSpace(fmt.Sprintf("%v %s%s", status, result, reason))
		}
		return []schemas.Decision{decider.ContinueAsNew(got)}, nil
	}
	return nil, nil
}

func (r *reference) activities(ctx context.Context, c *drover.Client) error {
	w := c.Activities(&activity.Options{Lists: []string{"default"}, DrainTimeout: time.Second})
	activity.Register(w, "measure", func(_ context.Context, in string) (int, error) { return len(in), nil })
	activity.Register(w, "once", func(context.Context, struct{}) (string, error) {
		r.once.Add(1)
		time.Sleep(500 * time.Millisecond)
		return "ran", nil
	})
	activity.Register(w, "flaky", func(ctx context.Context, _ struct{}) (string, error) {
		if activity.Info(ctx).Attempt == 1 {
			return "", activity.Fail("bad luck", nil)
		}
		return "good", nil
	})
	activity.Register(w, "slow", func(ctx context.Context, _ struct{}) (string, error) {
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return "", activity.Canceled(nil)
			case <-time.After(2 * time.Second):
				if err := activity.Heartbeat(ctx, i); err != nil {
					return "", err
				}
			}
		}
	})
	return w.Run(ctx)
}

// drive does what the client does, again and again until it has gone well: whatever it does carries a request id.
func (r *reference) drive() (result map[string]string) {
	r.t.Helper()
	judge := r.judged(roleClient)
	for try := 1; ; try++ {
		var err error
		r.process(roleClient, judge, func(ctx context.Context, c *drover.Client) { result, err = r.steps(ctx, c) })
		judge = nil
		if result != nil {
			return result
		}
		if try == 20 {
			r.t.Fatalf("the client gives up: %v; %v", err, r.api("why", `{"workflowId":"o"}`))
		}
	}
}

func (r *reference) steps(ctx context.Context, c *drover.Client) (result map[string]string, err error) {
	if _, err := c.Start(ctx, "peer", nil, &drover.StartOptions{ID: "peer", RequestID: "start peer"}); err != nil {
		return nil, err
	}
	_, err = c.Start(ctx, "order", strings.Repeat("x", pad), &drover.StartOptions{
		ID: "o", RequestID: "start o", ActivityDefaults: &schemas.ActivityDefaults{List: "default"},
	})
	if err != nil {
		return nil, err
	}
	if err := r.signal(ctx, c, "api", "s1"); err != nil {
		return nil, err
	}
	if _, err := signals.PublishOnce(ctx, c, string(ns), "o", "published", "s2", []byte(`2`)); err != nil {
		return nil, err
	}
	next, err := r.successor(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := signals.PublishOnce(ctx, c, string(ns), "o", "finish", "s3", []byte(`3`)); err != nil {
		return nil, err
	}
	if !r.until(5*time.Minute, func() bool { return ctx.Err() != nil || r.status("o").Closed() }) {
		return nil, errors.New("the order does not close")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	err = c.Run("o", next).Result(ctx, &result)
	return result, err
}

// signal is a signal by API with a request id that the test can repeat, which the handle's own method mints anew.
func (r *reference) signal(ctx context.Context, c *drover.Client, name, id string) error {
	var err error
	for range 20 {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		var m natsconn.Msg
		m, err = natsconn.Of(c).Request(one, ns.API("signal"), nil, fmt.Appendf(nil, `{"workflowId":"o","name":"%s","input":1,"requestId":"%s"}`, name, id))
		cancel()
		var a schemas.SignalResponse
		if err == nil {
			err = json.Unmarshal(m.Data, &a)
		}
		switch {
		case err == nil && a.Error == nil:
			return nil
		case err == nil:
			err = a.Error
			if a.Error.Code == schemas.CodeClosed { // a repeat of one that was stored long ago
				return nil
			}
		case ctx.Err() != nil:
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// successor waits until the workflow has continued as new. Nobody asks.
func (r *reference) successor(ctx context.Context) (run string, err error) {
	for range 3000 {
		if begun := r.recorded("o"); len(begun) > 0 {
			if a, ok := begun[0].Attributes.(*schemas.WorkflowStarted); ok && a.ContinuedExecutionRun != "" {
				return r.lastRun("o"), nil
			}
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return "", errors.New("the order does not continue as new")
}

func TestReference(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		began := time.Now()
		r := refer(f, nil)
		defer r.stop()
		result := r.drive()
		t.Logf("took %v", time.Since(began))
		r.want(result, false)
	})
}
