package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// starters is how many starts are outstanding in W5.
const starters = 64

const sleeperPrefix = "sleeper-"

// asleep is W5: workflows that wait for one timer.
func asleep(n int) workload {
	return workload{
		run:   func(ctx context.Context, b *bench, l *line) error { return b.sleepers(ctx, l, n) },
		alone: true,
	}
}

func (b *bench) sleepers(ctx context.Context, l *line, n int) error {
	l.Workflows = cmp.Or(b.o.n, n)
	empty, err := b.usages()
	if err != nil {
		return err
	}
	began := time.Now()
	l.took, err = atOnce(ctx, starters, l.Workflows, func(ctx context.Context, i int) error {
		j := job{Kind: "sleep", Millis: b.nap(i, began).Milliseconds(), Payload: payload}
		_, err := b.client.Start(ctx, "bench", j, &drover.StartOptions{ID: fmt.Sprint(sleeperPrefix, i)})
		return err
	})
	if err != nil {
		return err
	}
	started := time.Now()
	l.Starts = float64(l.Workflows) / started.Sub(began).Seconds()
	// The last first decisions are still under way.
	if err := sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	from := time.Now()
	if l.AsleepRSS, l.AsleepCPU, err = b.rest(ctx, 5*time.Second); err != nil {
		return err
	}
	to := time.Now()
	l.AsleepRoom = float64(l.AsleepRSS["server"]-empty["server"].rss) / float64(l.Workflows)
	night, err := b.rested(ctx, l, began, started)
	if err != nil {
		return err
	}
	// Nothing is read while they wake, so that reading makes nobody late.
	last := started.Add(b.o.sleep)
	if b.o.wakes > 0 {
		last = began.Add(b.o.sleep + b.spread(l.Workflows))
	}
	if err := sleep(ctx, time.Until(last.Add(2*time.Second))); err != nil {
		return err
	}
	if err := b.woken(ctx, l, night); err != nil {
		return err
	}
	d := dormitory{b: b, naps: map[string]*nap{}, after: make([]uint64, b.o.partitions)}
	for d.closed < l.Workflows {
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("%d of %d sleepers have ended: %w", d.closed, l.Workflows, err)
		}
		if err := d.read(ctx); err != nil {
			return err
		}
	}
	if err := b.lagged(ctx, l); err != nil {
		return err
	}
	return d.tell(l, from, to)
}

// nap is how long a sleeper sleeps: as long as every other, or until its turn at the rate of -wakes.
func (b *bench) nap(i int, began time.Time) time.Duration {
	if b.o.wakes == 0 {
		return b.o.sleep
	}
	return max(time.Millisecond, time.Until(began.Add(b.o.sleep+b.spread(i))))
}

// spread is how far apart n sleepers are due.
func (b *bench) spread(n int) time.Duration {
	return time.Duration(n) * time.Second / time.Duration(b.o.wakes)
}

// night is what had been used before the first sleeper woke.
type night struct {
	processes map[string]usage
	traffic   traffic
}

// rested reads the memory, and what else was used until then, when the server has been at rest for as long as the sleepers let it. It
// returns nil if some wake by now.
func (b *bench) rested(ctx context.Context, l *line, began, started time.Time) (*night, error) {
	left := time.Until(began.Add(b.o.sleep - time.Second))
	if left <= 0 {
		return nil, nil
	}
	if err := sleep(ctx, left); err != nil {
		return nil, err
	}
	l.RestedSeconds = time.Since(started).Seconds()
	n, err := b.usedBy(ctx)
	if err != nil {
		return nil, err
	}
	l.RestedRSS = map[string]int64{}
	for name, u := range n.processes {
		l.RestedRSS[name] = u.rss
	}
	return n, nil
}

func (b *bench) usedBy(ctx context.Context) (n *night, err error) {
	n = &night{}
	if n.traffic, err = readTraffic(ctx, natsconn.Of(b.client)); err != nil {
		return nil, err
	}
	n.processes, err = b.usages()
	return n, err
}

// woken divides what was used since the night among the sleepers, once the histories grow no more.
func (b *bench) woken(ctx context.Context, l *line, before *night) error {
	if before == nil {
		return nil
	}
	for last, end := uint64(0), uint64(1); last != end; {
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			return err
		}
		last, end = end, 0
		for p := range b.o.partitions {
			seq, err := natsconn.Of(b.client).StreamLastSeq(ctx, namespace.StreamHistory(p))
			if err != nil {
				return err
			}
			end += seq
		}
	}
	now, err := b.usedBy(ctx)
	if err != nil {
		return err
	}
	l.WakeCPU = map[string]float64{}
	for name, u := range now.processes {
		l.WakeCPU[name] = 1e6 * (u.cpu - before.processes[name].cpu) / float64(l.Workflows)
	}
	l.WakeReceived = float64(now.traffic.received-before.traffic.received) / float64(l.Workflows)
	l.WakeSent = float64(now.traffic.sent-before.traffic.sent) / float64(l.Workflows)
	return nil
}

// nap is what a sleeper's history says, by the server's timestamps: they alone decide when a timer is due.
type nap struct{ due, armed, expired time.Time }

// dormitory reads the histories of all sleepers, each record once.
type dormitory struct {
	b      *bench
	naps   map[string]*nap // by workflow id
	after  []uint64        // by partition
	closed int
	awake  int // records from TimerExpired on
}

func (d *dormitory) read(ctx context.Context) error {
	for p := range d.after {
		o := natsconn.ReadOptions{FilterSubjects: []string{namespace.AllRuns(p)}, StartSeq: d.after[p] + 1}
		err := natsconn.Of(d.b.client).Scan(ctx, namespace.StreamHistory(p), o, func(m natsconn.Stored) error {
			d.after[p] = m.Seq
			var r schemas.Record
			if err := schemas.Unmarshal(m.Data, &r); err != nil {
				return err
			}
			if !strings.HasPrefix(r.WorkflowID, sleeperPrefix) {
				return nil
			}
			return d.add(&r, m.Time)
		})
		if err != nil {
			return fmt.Errorf("read the histories of partition %d: %w", p, err)
		}
	}
	return nil
}

func (d *dormitory) add(r *schemas.Record, at time.Time) error {
	n := d.naps[r.WorkflowID]
	if n == nil {
		n = &nap{}
		d.naps[r.WorkflowID] = n
	}
	for _, e := range r.Events {
		switch a := e.Attributes.(type) {
		case *schemas.TimerScheduled:
			n.armed, n.due = at, at.Add(time.Duration(a.StartToFireTimeout))
		case *schemas.TimerExpired:
			n.expired = at
		case *schemas.WorkflowSuccess:
			d.closed++
		case *schemas.WorkflowFailed, *schemas.WorkflowTimedOut:
			return fmt.Errorf("%s ended with %s", r.WorkflowID, e.Type())
		}
	}
	if !n.expired.IsZero() {
		d.awake++
	}
	return nil
}

// tell says how late the sleepers woke, and how many slept through the whole time from..to.
func (d *dormitory) tell(l *line, from, to time.Time) error {
	late := make([]time.Duration, 0, len(d.naps))
	for id, n := range d.naps {
		if n.due.IsZero() || n.expired.Before(n.due) {
			return fmt.Errorf("%s was due at %v and woke at %v: a timer must never be early", id, n.due, n.expired)
		}
		late = append(late, n.expired.Sub(n.due))
		if n.armed.Before(from) && n.expired.After(to) {
			l.Asleep++
		}
	}
	if l.Asleep == 0 {
		return fmt.Errorf("none of %d slept while memory and CPU were read: raise -sleep", l.Workflows)
	}
	l.WakeRecords = float64(d.awake) / float64(len(d.naps))
	l.LateP50, l.LateP99, l.LateMax = millis(quantile(late, 50)), millis(quantile(late, 99)), millis(quantile(late, 100))
	return nil
}
