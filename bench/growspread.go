package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/droverhq/drover/broker/topology"
)

// benchList is the task list that every worker serves, and the first of many.
const benchList = "bench"

// lists measures W1 spread over ever more task lists, each time on a new server.
func (g *grower) lists(ctx context.Context, at []int) error {
	return g.each(ctx, "lists", at, func(n int) (partitions, lists, size int, of func(i int) job) {
		return g.o.partitions, n, 1000, func(i int) job { return job{Kind: "seq", N: 3, List: listName(i % n)} }
	})
}

// partitions measures W1 on ever more partitions, each time on a new server.
func (g *grower) partitions(ctx context.Context, at []int) error {
	return g.each(ctx, "partitions", at, func(n int) (partitions, lists, size int, of func(i int) job) {
		return n, 1, 1000, usual
	})
}

// payloads measures W1 with ever larger arguments and results of its activities, each time on a new server.
func (g *grower) payloads(ctx context.Context, at []int) error {
	return g.each(ctx, "payload", at, func(n int) (partitions, lists, size int, of func(i int) job) {
		return g.o.partitions, 1, min(1000, max(100, 6_000_000/n)), func(int) job { return job{Kind: "seq", N: 3, Size: n} }
	})
}

// each measures W1 at each place on a new server, in turn with one that stays as W1 has it.
func (g *grower) each(ctx context.Context, curve string, at []int, world func(n int) (partitions, lists, size int, of func(i int) job)) (err error) {
	unchanged, err := g.fresh(ctx, "new", g.o.partitions)
	defer func() { err = unchanged.done(err) }()
	if err != nil {
		return err
	}
	for _, n := range at {
		if err := g.oneOf(ctx, curve, n, unchanged, world); err != nil {
			return fmt.Errorf("at %d: %w", n, err)
		}
	}
	return nil
}

func (g *grower) oneOf(ctx context.Context, curve string, n int, unchanged *bench, world func(n int) (partitions, lists, size int, of func(i int) job)) (err error) {
	partitions, lists, size, of := world(n)
	b, err := g.fresh(ctx, "grown", partitions)
	defer func() { err = b.done(err) }()
	if err != nil {
		return err
	}
	if err := b.serveLists(ctx, lists); err != nil {
		return err
	}
	p := g.point(curve, n, partitions)
	if err := p.bursts(ctx, b, unchanged, tries, size, of); err != nil {
		return err
	}
	if curve == "payload" {
		p.Moved = p.PerSecond * 6 * float64(n) / 1e6 // argument and result of three activities
	}
	rss, cpu, err := b.rest(ctx, restAsleep)
	if err != nil {
		return err
	}
	p.RSS, p.IdleCPU = rss["server"], cpu["server"]
	return g.tell(p)
}

// serveLists makes task lists, and a worker for all of them. The server makes at most 100 by itself.
func (b *bench) serveLists(ctx context.Context, n int) error {
	if n <= 1 {
		return nil
	}
	for i := range n {
		if err := topology.EnsureList(ctx, b.client.Conn(), namespace, listName(i), topology.ListOptions{MaxLists: n + 1}); err != nil {
			return err
		}
	}
	old := b.procs["worker"]
	if err := errors.Join(old.Process.Signal(syscall.SIGTERM), old.Wait()); err != nil {
		return fmt.Errorf("the worker of one list: %w", err)
	}
	b.lists = n
	if err := b.startWorker(); err != nil {
		return err
	}
	return b.warm(ctx)
}

// listName is the name of one of many task lists.
func listName(i int) string {
	if i == 0 {
		return benchList
	}
	return fmt.Sprint(benchList, "-", i)
}
