package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider/flow"
	"github.com/droverhq/drover/decider/flow/deployed"
	"github.com/droverhq/drover/decider/flow/store"
	"github.com/droverhq/drover/schemas"
)

// The flows are those of the raw decider in YAML: F3 is W1, and FL a run that never stands still for long.
const (
	flowOfThree = `name: bench-three
idempotent: all
steps:
- activity echo on bench with payload = ${payload}
- activity echo on bench with payload = ${payload}
- activity echo on bench with payload = ${payload}
- return done
`
	flowLoop = `name: bench-loop
idempotent: all
steps:
- let n = 0
- id: again
  step: activity echo on bench with payload = ${payload}
- let n = ${n} + 1
- step: goto again
  condition: {target: "${n}", less-than: "${times}"}
- return ${n}
`
	// loopTimes is how many iterations FL has, and loopSpan over how many of them its figures are a median.
	loopTimes = 10_000
	loopSpan  = 100
)

// flows runs deployed flows, as drover worker --flows does.
func flows(client *drover.Client) func(context.Context) error {
	return deployed.New(client.Conn(), &deployed.Options{Namespace: client.Namespace(), Concurrency: 256}).Run
}

func (b *bench) deploy(ctx context.Context, text string) (name string, err error) {
	d, err := flow.Parse("bench.yaml", []byte(text), nil)
	if err != nil {
		return "", err
	}
	_, err = store.Open(b.client.Conn(), subject.Namespace(b.client.Namespace())).Deploy(ctx, store.Flow, d)
	return d.Name, err
}

// flow runs one to its end.
func (b *bench) flow(ctx context.Context, name string, input any) error {
	run, err := b.client.Start(ctx, name, input, nil)
	if err != nil {
		return err
	}
	return run.Result(ctx, nil)
}

// manyFlows is W1 with a flow in place of the decider. One run before them finds the flow and warms up.
func (b *bench) manyFlows(ctx context.Context, l *line) error {
	name, err := b.deploy(ctx, flowOfThree)
	if err != nil {
		return err
	}
	input := map[string]any{"payload": payload}
	if err := b.flow(ctx, name, input); err != nil {
		return err
	}
	return b.volley(ctx, l, 0, func(ctx context.Context) error {
		return b.flow(ctx, name, input)
	})
}

// loop runs one flow of many iterations, and compares its beginning with its end.
func (b *bench) loop(ctx context.Context, l *line) error {
	name, err := b.deploy(ctx, flowLoop)
	if err != nil {
		return err
	}
	l.Workflows, l.Iterations = 1, loopTimes
	if b.o.n > 0 {
		l.Iterations = max(b.o.n, 2*loopSpan)
	}
	began := time.Now()
	run, err := b.client.Start(ctx, name, map[string]any{"payload": payload, "times": l.Iterations}, nil)
	if err != nil {
		return err
	}
	first := b.client.Run(run.ID, run.RunID)
	if err := run.Result(ctx, nil); err != nil {
		return err
	}
	l.WallMS = millis(time.Since(began))
	l.IterationMS = l.WallMS / float64(l.Iterations)
	if l.FirstDecisionMS, l.FirstContext, err = decisionsOf(ctx, first, false); err != nil {
		return err
	}
	l.LastDecisionMS, l.LastContext, err = decisionsOf(ctx, b.client.Run(run.ID, ""), true)
	return err
}

// decisionsOf tells the median time of a decision, from its schedule to its record, and the size of the context that the last of them left:
// of the first iterations of a run, from the tenth on, or of its last ones.
func decisionsOf(ctx context.Context, run *drover.Run, last bool) (ms float64, size int64, err error) {
	var all []schemas.Event
	for e, err := range run.History(ctx, drover.HistoryOptions{}) {
		if err != nil {
			return 0, 0, err
		}
		all = append(all, e)
	}
	var took []time.Duration
	var sizes []int64
	scheduled := schemas.Timestamp(0)
	for _, e := range all {
		switch a := e.Attributes.(type) {
		case *schemas.DeciderScheduled:
			scheduled = e.Time
		case *schemas.DeciderCompleted:
			took, sizes = append(took, e.Time.Sub(scheduled)), append(sizes, int64(len(a.ExecutionContext)))
		}
	}
	const from = 10
	if len(took) < from+loopSpan {
		return 0, 0, fmt.Errorf("the run has %d decisions, want %d at least", len(took), from+loopSpan)
	}
	if last { // but for the one that ends the run
		took, sizes = took[len(took)-loopSpan-1:len(took)-1], sizes[len(sizes)-loopSpan-1:len(sizes)-1]
	} else {
		took, sizes = took[from:from+loopSpan], sizes[:from+1]
	}
	slices.Sort(took)
	if sizes[len(sizes)-1] == 0 {
		return 0, 0, errors.New("a decision has left no context")
	}
	return float64(took[len(took)/2].Nanoseconds()) / 1e6, sizes[len(sizes)-1], nil
}
