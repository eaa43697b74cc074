package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover"
)

const (
	// outstandingFill is how many starts are outstanding while the world grows.
	outstandingFill = 256
	idlePrefix      = "idle-"
	// idleFor is the timer of an idle workflow.
	idleFor = 300 * 24 * time.Hour
)

// open measures W1 beside ever more workflows that wait: for a timer, or for a signal.
func (g *grower) open(ctx context.Context, curve, kind string, at []int) (err error) {
	unchanged, err := g.fresh(ctx, "new", g.o.partitions)
	defer func() { err = unchanged.done(err) }()
	if err != nil {
		return err
	}
	b, err := g.fresh(ctx, "grown", g.o.partitions)
	defer func() { err = b.done(err) }()
	if err != nil {
		return err
	}
	empty, err := b.usages()
	if err != nil {
		return err
	}
	var points []*point
	var worlds []world
	defer func() { // also of those before one that failed
		for _, p := range points {
			err = errors.Join(err, g.tell(p))
		}
	}()
	for n, i := 0, 0; i < len(at); i++ {
		p := g.point(curve, at[i], g.o.partitions)
		if i == len(at)-1 {
			p.Rested = &memory{}
		}
		w, err := b.deepen(ctx, p, kind, n)
		if err != nil {
			return fmt.Errorf("%d workflows: %w", at[i], err)
		}
		if err := p.bursts(ctx, b, unchanged, openTries, 1000, usual); err != nil {
			return fmt.Errorf("W1 beside %d workflows: %w", at[i], err)
		}
		fmt.Fprintf(os.Stderr, "bench: %d workflows wait: %.0f workflows a second, %.2f of a new server; CPU %.2f and %.2f ms\n", p.At, p.PerSecond, p.OfNew, p.CPUMillis, p.NewCPU)
		points, worlds, n = append(points, p), append(worlds, w), at[i]
	}
	b.stop()
	return g.bare(ctx, points, worlds, empty["server"].rss)
}

// deepen starts workflows until there are as many as the point says, and looks at the server once all wait.
func (b *bench) deepen(ctx context.Context, p *point, kind string, have int) (world, error) {
	began := time.Now()
	if err := b.fill(ctx, kind, have, p.At); err != nil {
		return nil, err
	}
	p.Starts = float64(p.At-have) / time.Since(began).Seconds()
	if err := b.settle(ctx); err != nil {
		return nil, err
	}
	rss, cpu, err := b.rest(ctx, restAsleep)
	if err != nil {
		return nil, err
	}
	p.RSS, p.IdleCPU = rss["server"], cpu["server"]
	if p.Live, err = b.live(); err != nil {
		return nil, err
	}
	if p.Rested != nil {
		if p.Rested.RSS, p.Rested.Live, err = b.restedMemory(ctx); err != nil {
			return nil, err
		}
	}
	return b.world(ctx)
}

// fill starts workflows until there are upTo.
func (b *bench) fill(ctx context.Context, kind string, from, upTo int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	j := job{Kind: kind, N: 1, Millis: idleFor.Milliseconds(), Payload: payload}
	_, err := atOnce(ctx, outstandingFill, upTo-from, func(ctx context.Context, i int) error {
		_, err := b.client.Start(ctx, "bench", j, &drover.StartOptions{ID: fmt.Sprint(idlePrefix, from+i)})
		return err
	})
	return err
}

// settle waits until nothing is written any more: all first decisions are made and all alarms armed.
func (b *bench) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for still, before := 0, world(nil); still < 2; {
		if err := sleep(ctx, time.Second); err != nil {
			return fmt.Errorf("the workflows do not come to rest: %w", err)
		}
		now, err := b.world(ctx)
		if err != nil {
			return err
		}
		if still++; !now.same(before) {
			still = 0
		}
		before = now
	}
	return nil
}

// world is what the streams hold that keep open workflows: histories and alarms.
type world []*jetstream.StreamInfo

func (b *bench) world(ctx context.Context) (w world, err error) {
	js := b.client.Conn().JetStream()
	for p := range b.o.partitions {
		for _, name := range []string{namespace.StreamHistory(p), namespace.StreamAlarms(p)} {
			s, err := js.Stream(ctx, name)
			if err != nil {
				return nil, fmt.Errorf("stream %s: %w", name, err)
			}
			w = append(w, s.CachedInfo())
		}
	}
	return w, nil
}

func (w world) same(other world) bool {
	for i := range w {
		if len(other) != len(w) || w[i].State.LastSeq != other[i].State.LastSeq {
			return false
		}
	}
	return true
}
