package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/e2e/load"
)

// pressure is a load under way: so many workflows at once, each in a goroutine that starts it, signals it and waits for
// its end.
type pressure struct {
	w              *world
	js             jetstream.JetStream
	*load.Pressure // its progress: acknowledged starts, acknowledged signals, ends

	mu      sync.Mutex
	runs    []*drover.Run // acknowledged
	acked   []poke
	unknown []poke // not acknowledged: stored or not
}

// poke is a signal. Its body is its own, so that each can be found again.
type poke struct{ id, body string }

func newPressure(w *world) *pressure {
	w.t.Helper()
	js, err := jetstream.New(w.plain())
	if err != nil {
		w.t.Fatal(err)
	}
	return &pressure{w: w, js: js, Pressure: load.NewPressure(w.t)}
}

// begin starts the workflows and returns how much progress they will make.
func (p *pressure) begin(ctx context.Context, prefix string, loads []load.Input) (total int) {
	for i, l := range loads {
		total += 2 + l.Signals
		p.Go(func() { p.one(ctx, fmt.Sprintf("%s-%d", prefix, i), l) })
	}
	return total
}

// loads makes n loads: sequential activities, some with a timer, some that wait for signals.
func loads(rng *rand.Rand, n int) []load.Input {
	all := make([]load.Input, n)
	for i := range all {
		all[i] = load.Input{Steps: 3}
		if i%3 == 0 {
			all[i].Timer = 20 + rng.IntN(100)
		}
		if i%2 == 0 {
			all[i].Signals = 1 + rng.IntN(2)
		}
	}
	return all
}

func (p *pressure) one(ctx context.Context, id string, l load.Input) {
	run, err := p.w.client.Start(ctx, load.Type, l, &drover.StartOptions{ID: id, DecisionTimeout: 3 * time.Second})
	if err != nil {
		p.Wrong("start %s: %v", id, err)
		return
	}
	p.mu.Lock()
	p.runs = append(p.runs, run)
	p.mu.Unlock()
	p.Step()
	for n := range l.Signals {
		if n%2 == 0 {
			p.poke(ctx, id, n)
		} else {
			p.pokeByAPI(ctx, run, n)
		}
	}
	p.EndsWell(ctx, run, l)
	p.Step()
}

// poke publishes like a stranger, until one signal is acknowledged. No try repeats another: each is a signal.
func (p *pressure) poke(ctx context.Context, id string, n int) {
	for try := 0; ctx.Err() == nil; try++ {
		s := poke{id, fmt.Sprintf(`"signal %d try %d of %s"`, n, try, id)}
		one, cancel := context.WithTimeout(ctx, time.Second)
		_, err := p.js.Publish(one, namespace.Signal(id, load.Poke), []byte(s.body))
		cancel()
		p.mu.Lock()
		if err == nil {
			p.acked = append(p.acked, s)
		} else {
			p.unknown = append(p.unknown, s)
		}
		p.mu.Unlock()
		if err == nil {
			p.Step()
			return
		}
	}
}

// pokeByAPI signals through the client, which repeats a request that got no answer under the same request id.
func (p *pressure) pokeByAPI(ctx context.Context, run *drover.Run, n int) {
	s := poke{run.ID, fmt.Sprintf(`"signal %d by the API of %s"`, n, run.ID)}
	switch err := run.Signal(ctx, load.Poke, json.RawMessage(s.body)); {
	case err == nil:
		p.mu.Lock()
		p.acked = append(p.acked, s)
		p.mu.Unlock()
	case !errors.Is(err, drover.ErrClosed): // a try of poke that was not acknowledged may have done for this one
		p.Wrong("signal %s: %v", run.ID, err)
	}
	p.Step()
}

// nothingLost checks what was acknowledged against what is stored: each run has ended once, each signal is in exactly
// one place, and one that was not acknowledged in at most one.
func (p *pressure) nothingLost() *archive {
	p.w.t.Helper()
	a := p.w.verify()
	dead := map[string]int{}
	for _, letter := range p.w.dead("") {
		dead[string(letter.Body)]++
	}
	for _, run := range p.runs {
		if n := a.closes[run.RunID]; n != 1 {
			p.w.t.Errorf("%s run %s has ended %d times, want once", run.ID, run.RunID, n)
		}
	}
	for _, s := range p.acked {
		if n := a.signals[s.id][s.body] + dead[s.body]; n != 1 {
			p.w.t.Errorf("%s of %s was acknowledged: it is in the history %d times and in the dead letters %d times, want one of them once",
				s.body, s.id, a.signals[s.id][s.body], dead[s.body])
		}
	}
	for _, s := range p.unknown {
		if n := a.signals[s.id][s.body] + dead[s.body]; n > 1 {
			p.w.t.Errorf("%s of %s is stored %d times, want at most once", s.body, s.id, n)
		}
	}
	p.w.t.Logf("%d starts, %d signals acknowledged, %d unknown, %d dead letters", len(p.runs), len(p.acked), len(p.unknown), len(dead))
	return a
}
