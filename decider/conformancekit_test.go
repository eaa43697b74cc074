package decider_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// who is the input of runs and activities.
type who struct {
	Who string `json:"who"`
}

// handsOf is the worker of all activities.
func handsOf(e *drovertest.Env) *activity.Worker {
	w := e.Client.Activities(&activity.Options{Lists: []string{contract.DefaultList}})
	activity.Register(w, "large", func(context.Context, who) (string, error) { return large, nil })
	activity.Register(w, "rests", func(context.Context, who) (string, error) { return "rested", nil })
	var mu sync.Mutex
	tries := 0
	activity.Register(w, "third-time", func(context.Context, who) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if tries++; tries%3 != 0 {
			return "", errors.New("not yet")
		}
		return "at last", nil
	})
	activity.Register(w, "broken", func(context.Context, who) (string, error) {
		return "", errors.New("broken")
	})
	activity.Register(w, "hangs", func(ctx context.Context, _ who) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	activity.Register(w, "naps", func(ctx context.Context, in who) (string, error) {
		d := map[string]time.Duration{"short": time.Minute, "long": 5 * time.Minute}[in.Who]
		select {
		case <-time.After(d):
			return in.Who, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	return w
}

// workerOf is a worker that decides in a way.
func workerOf(
	t *testing.T, e *drovertest.Env, w way, c circumstance, stages map[string]*stage,
) *decider.Worker {
	o := &decider.Options{}
	if c.forgetful {
		o.StickyCache = -1
	}
	if c.loses { // the log would be full of it
		log := logrus.New()
		log.SetOutput(io.Discard)
		o.Logger = log
	}
	worker := e.Client.Deciders(o)
	w.register(t, guests{worker, c, stages}, c.forgetful)
	return worker
}

// guests is a worker that does to its deciders what the circumstances are.
type guests struct {
	*decider.Worker
	circumstance
	stages map[string]*stage
}

func (r guests) Register(typ string, d decider.Decider) {
	g := &guest{d, r.circumstance, r.stages[typ]}
	if c, ok := d.(decider.Checker); ok {
		r.Worker.Register(typ, struct {
			*guest
			decider.Checker
		}{g, c})
		return
	}
	r.Worker.Register(typ, g)
}

// guest is a decider with the abilities of another one.
type guest struct {
	decider.Decider
	circumstance
	stage *stage // nil for children
}

func (g *guest) Decide(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
	all, err := g.Decider.Decide(ctx, t)
	if err != nil || t.Ahead() {
		return all, err
	}
	if !g.loses || t.Attempt() > 1 {
		return all, g.stage.overtake(ctx, t, all)
	}
	switch t.StartedID() % 3 {
	case 0:
		return nil, errors.New("the answer is lost")
	case 1:
		panic("the answer is lost")
	}
	<-ctx.Done() // it comes too late
	return all, nil
}

// overtake sends a signal, and waits until the history has it, while an answer is to close the run.
func (s *stage) overtake(ctx context.Context, t *decider.Task, answer []schemas.Decision) error {
	if s == nil || len(answer) == 0 {
		return nil
	}
	switch answer[len(answer)-1].Attributes.(type) {
	case *schemas.CompleteWorkflow, *schemas.ContinueAsNew:
	default:
		return nil
	}
	if s.overtaken.Add(1) > s.lates {
		return nil
	}
	if err := s.open().Signal(ctx, "note", "late"); err != nil {
		return err
	}
	for e, err := range s.open().History(ctx, drover.HistoryOptions{After: t.StartedID(), Follow: true}) {
		if err != nil || e.Type() == schemas.EventSignal {
			return err
		}
	}
	return errors.New("the run has ended without the signal")
}

func (g *guest) Stop() {
	if s, ok := g.Decider.(decider.Stopper); ok {
		s.Stop()
	}
}

func (g *guest) Needs() []schemas.Feature {
	if n, ok := g.Decider.(decider.Needs); ok {
		return n.Needs()
	}
	return nil
}

func (g *guest) Apart() bool {
	a, ok := g.Decider.(decider.Apart)
	return ok && a.Apart()
}

// EvictIf is what drovertest looks for.
func (g *guest) EvictIf(f func(*decider.Task) bool) {
	if e, ok := g.Decider.(interface {
		EvictIf(func(*decider.Task) bool)
	}); ok {
		e.EvictIf(f)
	}
}
