package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

const signalName = "news"

// namespace is the one that a server makes by itself.
const namespace = subject.Namespace("default")

// signalled is W4: signals to one workflow, which completes when its decider has seen them all.
func signalled(senders int, send func(*bench, context.Context, *drover.Run) error) workload {
	return workload{
		run:    func(ctx context.Context, b *bench, l *line) error { return b.signals(ctx, l, senders, send) },
		finish: func(ctx context.Context, b *bench, l *line) error { return b.count(ctx, l) },
	}
}

func (b *bench) signals(ctx context.Context, l *line, senders int, send func(*bench, context.Context, *drover.Run) error) error {
	l.Signals, l.Senders = cmp.Or(b.o.n, 2000), senders
	run, err := b.client.Start(ctx, "bench", job{Kind: "signals", N: l.Signals, Payload: payload}, nil)
	if err != nil {
		return err
	}
	l.run = run
	began := time.Now()
	if l.took, err = atOnce(ctx, senders, l.Signals, func(ctx context.Context, _ int) error { return send(b, ctx, run) }); err != nil {
		return err
	}
	l.Accepted = float64(l.Signals) / time.Since(began).Seconds()
	err = run.Result(ctx, nil)
	l.HandledMS = millis(time.Since(began))
	return err
}

// count holds the history against what the decider claims: it has each signal once.
func (b *bench) count(ctx context.Context, l *line) error {
	n := 0
	for e, err := range l.run.History(ctx, drover.HistoryOptions{}) {
		if err != nil {
			return err
		}
		if _, ok := e.Attributes.(*schemas.Signal); ok {
			n++
		}
	}
	if n != l.Signals {
		return fmt.Errorf("the history of %s has %d signals, want %d", l.run.ID, n, l.Signals)
	}
	return nil
}

// publish signals as a stranger does, by one JetStream message.
func (b *bench) publish(ctx context.Context, run *drover.Run) error {
	_, err := natsconn.Of(b.client).JetStream().Publish(ctx, namespace.Signal(run.ID, signalName), []byte(payload))
	return err
}

// call signals by the API.
func (b *bench) call(ctx context.Context, run *drover.Run) error {
	return run.Signal(ctx, signalName, payload)
}
