//go:build linux

package damage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/e2e/load"
	"github.com/droverhq/drover/schemas"
)

// workers runs the deciders and activities of the load until the returned function is called.
func (m *machine) workers() (stop func()) {
	deciders, activities := m.deciders(), m.activities()
	return func() { deciders(); activities() }
}

func (m *machine) deciders() (stop func()) {
	deciders := m.client.Deciders(nil)
	deciders.Register(load.Type, decider.Func(load.Decide))
	return m.serve(map[string]func(context.Context) error{"deciders": deciders.Run})
}

func (m *machine) activities() (stop func()) {
	activities := m.client.Activities(&activity.Options{Lists: []string{load.List}, DrainTimeout: 5 * time.Second})
	activity.Register(activities, "square", func(_ context.Context, n int) (int, error) { return n * n, nil })
	return m.serve(map[string]func(context.Context) error{"activities": activities.Run})
}

func (m *machine) serve(all map[string]func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(m.t.Context()))
	var wg sync.WaitGroup
	for name, run := range all {
		wg.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				m.t.Errorf("%s: %v", name, err)
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// ack is something that was acknowledged to a client.
type ack struct {
	id, run string // run is empty for a signal
	body    string // of a signal
	at      time.Time
}

// pressure is a load under way, and what was acknowledged to it.
type pressure struct {
	m     *machine
	lossy bool // what was acknowledged may be lost: begin again rather than complain
	js    jetstream.JetStream
	*load.Pressure

	mu      sync.Mutex
	starts  []ack
	ends    []ack
	signals []ack
	unknown []ack // not acknowledged: stored or not
	loads   map[string]load.Input
}

func newPressure(m *machine, lossy bool) *pressure {
	m.t.Helper()
	nc, err := nats.Connect(m.url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		m.t.Fatal(err)
	}
	return &pressure{m: m, lossy: lossy, js: js, Pressure: load.NewPressure(m.t), loads: map[string]load.Input{}}
}

// mixed makes n loads: all have activities, some a timer of up to so many milliseconds, most wait for signals.
func mixed(dice *rand.Rand, n, timer int) []load.Input {
	all := make([]load.Input, n)
	for i := range all {
		all[i] = load.Input{Steps: 1 + dice.IntN(3), Signals: dice.IntN(4)}
		if i%3 == 0 {
			all[i].Timer = 20 + dice.IntN(timer)
		}
	}
	return all
}

// begin starts the workflows and returns how much progress they will make.
func (p *pressure) begin(ctx context.Context, prefix string, loads []load.Input) (total int) {
	for i, l := range loads {
		total += 2 + l.Signals
		id := fmt.Sprintf("%s-%d", prefix, i)
		p.mu.Lock()
		p.loads[id] = l
		p.mu.Unlock()
		p.Go(func() { p.one(ctx, id, l) })
	}
	return total
}

func (p *pressure) one(ctx context.Context, id string, l load.Input) {
	run, err := p.m.client.Start(ctx, load.Type, l, &drover.StartOptions{ID: id, DecisionTimeout: 3 * time.Second})
	if known, ok := errors.AsType[*drover.Error](err); p.lossy && ok && errors.Is(err, drover.ErrAlreadyStarted) {
		run, err = p.m.client.Run(id, known.Run), nil // a try that was not acknowledged has begun it
	}
	if err != nil {
		p.Wrong("start %s: %v", id, err)
		return
	}
	p.note(&p.starts, ack{id: id, run: run.RunID})
	for n := range l.Signals {
		p.signal(ctx, run, n)
	}
	if p.lossy {
		p.push(ctx, id, l)
		return
	}
	p.EndsWell(ctx, run, l)
	p.note(&p.ends, ack{id: id, run: run.RunID})
}

// push begins a workflow anew if it is lost, and signals it until it has ended as it should.
func (p *pressure) push(ctx context.Context, id string, l load.Input) {
	for n := l.Signals; ctx.Err() == nil; n++ {
		one, cancel := context.WithTimeout(ctx, 700*time.Millisecond)
		o, err := p.m.client.Run(id, "").Wait(one)
		late := one.Err() != nil
		cancel()
		switch {
		case err == nil && (o.Status != schemas.StatusCompleted || string(o.Result) != l.Want()):
			p.Wrong("%s: got %s %q %s, want completed %q", id, o.Status, o.Result, o.Reason, l.Want())
			return
		case err == nil:
			p.note(&p.ends, ack{id: id, run: o.Run})
			return
		case errors.Is(err, drover.ErrNotFound):
			run, err := p.m.client.Start(ctx, load.Type, l, &drover.StartOptions{ID: id, ConflictPolicy: schemas.ConflictUseExisting, ReusePolicy: schemas.ReuseReject})
			if err == nil {
				p.note(&p.starts, ack{id: id, run: run.RunID})
			} else if !errors.Is(err, drover.ErrAlreadyStarted) && ctx.Err() == nil {
				p.Wrong("start %s again: %v", id, err)
				return
			}
		case !late && ctx.Err() == nil:
			p.Wrong("result of %s: %v", id, err)
			return
		default:
			p.signal(ctx, p.m.client.Run(id, ""), n)
		}
	}
	p.Wrong("%s: not ended in time", id)
}

// signal is by the API, or published like a stranger's until one is acknowledged. No try repeats another: each is a signal.
func (p *pressure) signal(ctx context.Context, run *drover.Run, n int) {
	if n%2 == 1 {
		s := ack{id: run.ID, body: fmt.Sprintf(`"signal %d by the API of %s, %d"`, n, run.ID, time.Now().UnixNano())}
		err := run.Signal(ctx, load.Poke, json.RawMessage(s.body))
		gone := errors.Is(err, drover.ErrClosed) || p.lossy && errors.Is(err, drover.ErrNotFound)
		switch {
		case err == nil:
			p.note(&p.signals, s)
		case gone: // a try that was not acknowledged has done for it, or its run is lost
			p.note(&p.unknown, s)
		case ctx.Err() == nil:
			p.Wrong("signal %s: %v", run.ID, err)
		}
		return
	}
	for try := 0; ctx.Err() == nil; try++ {
		s := ack{id: run.ID, body: fmt.Sprintf(`"signal %d try %d of %s, %d"`, n, try, run.ID, time.Now().UnixNano())}
		one, cancel := context.WithTimeout(ctx, time.Second)
		_, err := p.js.Publish(one, namespace.Signal(run.ID, load.Poke), []byte(s.body))
		cancel()
		if err == nil {
			p.note(&p.signals, s)
			return
		}
		p.mu.Lock()
		p.unknown = append(p.unknown, s)
		p.mu.Unlock()
	}
}

// note writes down what was acknowledged, which is progress.
func (p *pressure) note(list *[]ack, a ack) {
	a.at = time.Now()
	p.mu.Lock()
	*list = append(*list, a)
	p.mu.Unlock()
	p.Step()
}

// bounded is a context for one step of a test.
func bounded(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), patience)
}
