package main

import (
	"cmp"
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/droverhq/drover"
)

const (
	// backlogRuns is how many workflows wait for a worker by default: thousands for each partition, so that the records of one are far from each other.
	backlogRuns = 20_000
	// backlogRests is how long they wait, once all are started.
	backlogRests = 15 * time.Second
)

// backlog is WB: workflows of W1 are started while no worker runs, and wait for one that comes later. Their rate is that from the start of the
// worker on. Whoever waits for their ends asks for each in turn, so there are no times of single ones.
func backlog(ctx context.Context, b *bench, l *line) error {
	if err := b.renew(ctx); err != nil {
		return err
	}
	worker := b.procs["worker"]
	if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := worker.Wait(); err != nil {
		return fmt.Errorf("the worker did not stop in good order: %w", err)
	}
	delete(b.procs, "worker")
	l.Workflows = cmp.Or(b.o.n, backlogRuns)
	runs := make([]*drover.Run, l.Workflows)
	began := time.Now()
	_, err := atOnce(ctx, starters, l.Workflows, func(ctx context.Context, i int) (err error) {
		runs[i], err = b.client.Start(ctx, "bench", job{Kind: "seq", N: 3, Payload: payload}, nil)
		return err
	})
	if err != nil {
		return err
	}
	l.Starts = float64(l.Workflows) / time.Since(began).Seconds()
	if err := sleep(ctx, backlogRests); err != nil {
		return err
	}
	before, err := b.read(ctx)
	if err != nil {
		return err
	}
	began = time.Now()
	if err := b.startWorker(); err != nil {
		return err
	}
	if _, err := atOnce(ctx, starters, l.Workflows, func(ctx context.Context, i int) error { return runs[i].Result(ctx, nil) }); err != nil {
		return err
	}
	wall := time.Since(began)
	l.PerSecond = float64(l.Workflows) / wall.Seconds()
	after, err := b.read(ctx)
	if err != nil {
		return err
	}
	l.account(wall, before, after)
	return nil
}
