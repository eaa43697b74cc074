package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

const (
	// endless is more signals than any run of the bench gets: it never completes.
	endless = 1 << 40
	// decisions is how many decisions are measured at each length of the history.
	decisions = 1000
	// growers is how many senders make a history longer.
	growers = 32
)

// histories measures how long a decision takes in a run whose history grows, in turn with decisions in one that is new.
func (g *grower) histories(ctx context.Context, at []int) (err error) {
	if len(at) == 0 {
		return nil
	}
	b, err := g.bench("grown", g.o.partitions)
	defer func() { err = b.done(err) }()
	if err == nil {
		b.maxEvents = 2 * slices.Max(at) // decisions are measured beyond that, and none may be refused
		err = b.renew(ctx)
	}
	if err != nil {
		return err
	}
	long, err := b.signalled(ctx)
	if err != nil {
		return err
	}
	defer long.reader.Close()
	for _, n := range at {
		p := g.point("history", n, g.o.partitions)
		if err := long.grow(ctx, int64(n)); err != nil {
			return fmt.Errorf("%d events: %w", n, err)
		}
		p.Events = long.last.Load()
		if err := p.decide(ctx, b, long); err != nil {
			return fmt.Errorf("decisions at %d events: %w", n, err)
		}
		if err := g.tell(p); err != nil {
			return err
		}
	}
	return nil
}

// follower knows how far a run is by reading its history as it is written.
type follower struct {
	b       *bench
	run     *drover.Run
	reader  *post.Reader
	last    atomic.Int64 // event
	signals atomic.Int64 // in the history
	decided atomic.Int64 // of these, how many were there when the last decision was made
	news    chan struct{}
	sent    int64
	broken  atomic.Pointer[error]
}

// signalled starts a run that takes signals for ever, and decides upon each.
func (b *bench) signalled(ctx context.Context) (*follower, error) {
	run, err := b.client.Start(ctx, "bench", job{Kind: "signals", N: endless, Payload: payload}, nil)
	if err != nil {
		return nil, err
	}
	f := &follower{b: b, run: run, news: make(chan struct{}, 1)}
	p := subject.Partition(run.ID, b.o.partitions)
	o := post.ReadOptions{FilterSubjects: []string{namespace.History(p, run.ID, run.RunID)}}
	f.reader, err = b.client.Conn().Read(ctx, namespace.StreamHistory(p), o, f.read)
	if err != nil {
		return nil, err
	}
	return f, f.until(ctx, func() bool { return f.last.Load() > 1 && f.decided.Load() == 0 })
}

func (f *follower) read(m post.Stored) {
	var r schemas.Record
	if err := schemas.Unmarshal(m.Data, &r); err != nil {
		f.broken.Store(&err)
	}
	for _, e := range r.Events {
		switch e.Attributes.(type) {
		case *schemas.Signal:
			f.signals.Add(1)
		case *schemas.DeciderCompleted:
			f.decided.Store(f.signals.Load())
		}
		f.last.Store(e.ID)
	}
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// until waits for a record after which the condition holds.
func (f *follower) until(ctx context.Context, so func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for !so() {
		select {
		case <-f.news:
		case <-f.reader.Done():
			return fmt.Errorf("the history of %s cannot be followed: %w", f.run.ID, f.reader.Err())
		case <-ctx.Done():
			return fmt.Errorf("%s has %d events and decided upon %d of %d signals: %w", f.run.ID, f.last.Load(), f.decided.Load(), f.sent, ctx.Err())
		}
	}
	if err := f.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// signal sends signals, and waits until all are decided upon.
func (f *follower) signal(ctx context.Context, n int) error {
	f.sent += int64(n)
	_, err := atOnce(ctx, min(n, growers), n, func(ctx context.Context, _ int) error { return f.b.publish(ctx, f.run) })
	if err != nil {
		return err
	}
	return f.until(ctx, func() bool { return f.decided.Load() >= f.sent })
}

// grow makes the history as long as that, or a few events longer. A signal is one event, and its share of a decision up to
// three more.
func (f *follower) grow(ctx context.Context, events int64) error {
	for left := events - f.last.Load(); left > 0; left = events - f.last.Load() {
		if err := f.signal(ctx, int(min(max(left/4, 1), 2000))); err != nil {
			return err
		}
	}
	return nil
}

// decide measures decisions of the long run and of a new one, in turn.
func (p *point) decide(ctx context.Context, b *bench, long *follower) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	short, err := b.signalled(ctx)
	if err != nil {
		return err
	}
	defer short.reader.Close()
	took := map[*follower][]time.Duration{}
	for i := range decisions + 20 {
		for _, f := range []*follower{long, short} {
			began := time.Now()
			if err := f.signal(ctx, 1); err != nil {
				return err
			}
			if i >= 20 { // the first ones warm up
				took[f] = append(took[f], time.Since(began))
			}
		}
	}
	p.P50, p.P99 = millis(quantile(took[long], 50)), millis(quantile(took[long], 99))
	p.NewP50, p.NewP99 = millis(quantile(took[short], 50)), millis(quantile(took[short], 99))
	return short.run.Terminate(ctx, nil)
}
