package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// lagsSubject is where a worker tells how late sleepers were woken.
const lagsSubject = "bench.lags"

// lags are how late the code of sleepers went on, by the worker's clock, as the harnesses of the peers measure it: what the histories say
// besides includes the decision that follows.
type lags struct {
	mu  sync.Mutex
	all []time.Duration
}

// lagsTold is what a worker says of them.
type lagsTold struct {
	N                    int
	Least, P50, P99, Max time.Duration
}

// note looks for a timer that has expired among the events of a decision. One that was scheduled before them is left out.
func (g *lags) note(events []schemas.Event, now time.Time) {
	var due time.Time
	for _, e := range events {
		switch a := e.Attributes.(type) {
		case *schemas.TimerScheduled:
			due = e.Time.Time().Add(time.Duration(a.StartToFireTimeout))
		case *schemas.TimerExpired:
			if !due.IsZero() {
				g.mu.Lock()
				g.all = append(g.all, now.Sub(due))
				g.mu.Unlock()
			}
		}
	}
}

func (g *lags) tell() lagsTold {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.all) == 0 {
		return lagsTold{}
	}
	all := slices.Clone(g.all)
	return lagsTold{N: len(all), Least: slices.Min(all), P50: quantile(all, 50), P99: quantile(all, 99), Max: quantile(all, 100)}
}

// serve answers until ctx ends.
func (g *lags) serve(ctx context.Context, client *drover.Client) error {
	sub, err := natsconn.Of(client).Subscribe(lagsSubject, "", func(m natsconn.Msg) {
		if body, err := json.Marshal(g.tell()); err == nil {
			_ = m.Respond(nil, body) // who asked waits in vain if it fails, and says so
		}
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return sub.Close()
}

// lagged asks the worker how late it was.
func (b *bench) lagged(ctx context.Context, l *line) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	m, err := b.client.NATS().RequestWithContext(ctx, lagsSubject, nil)
	if err != nil {
		return fmt.Errorf("ask the worker how late it was: %w", err)
	}
	var told lagsTold
	if err := json.Unmarshal(m.Data, &told); err != nil {
		return err
	}
	return told.into(l)
}

func (told *lagsTold) into(l *line) error {
	if told.N < l.Workflows || told.Least < 0 {
		return fmt.Errorf("the worker was told of %d timers of %d, the earliest %v late: none may be missing or early", told.N, l.Workflows, told.Least)
	}
	l.LagP50, l.LagP99, l.LagMax = millis(told.P50), millis(told.P99), millis(told.Max)
	return nil
}
