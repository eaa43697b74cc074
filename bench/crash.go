package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
)

const (
	// onTheWire is how long what a killed process has sent may still be read.
	onTheWire = 200 * time.Millisecond
	// crashLimit is how long after the kill everything must have ended.
	crashLimit = 2 * time.Minute
	// claimTTL of W7b is that of a server by default.
	claimTTL = 10 * time.Second
)

// killed is W7: kill -9 of a process in the middle of W1, and its restart by again, nil for none.
func killed(victim string, again func(b *bench, ctx context.Context) error) func(context.Context, *bench, *line) error {
	return func(ctx context.Context, b *bench, l *line) error {
		b.runs = filepath.Join(b.dir, "runs")
		if err := b.renew(ctx); err != nil {
			return err
		}
		return b.crash(ctx, l, victim, again)
	}
}

// twoBrokers is W7b: kill -9 of one of two brokers beside a NATS server, for good.
func twoBrokers(ctx context.Context, b *bench, l *line) error {
	const first, second = "broker1", "broker2"
	b.runs = filepath.Join(b.dir, "runs")
	b.stop()
	if err := os.RemoveAll(b.store()); err != nil {
		return err
	}
	if err := b.launch("--roles", "timers,ops"); err != nil {
		return err
	}
	if err := b.awaitNATS(ctx); err != nil {
		return err
	}
	for _, name := range []string{first, second} {
		cmd := exec.Command(b.binary, "server", "--nats", b.url, "--roles", "broker", "--node", name, "--claim-ttl", claimTTL.String())
		if err := b.spawn(name, cmd); err != nil {
			return err
		}
	}
	if err := b.await(ctx); err != nil {
		return err
	}
	if err := b.shared(ctx, first, second); err != nil {
		return err
	}
	if err := b.startWorker(); err != nil {
		return err
	}
	if err := b.warm(ctx); err != nil {
		return err
	}
	return b.crash(ctx, l, first, nil)
}

// settled is how long after the last partition has changed hands the load begins.
const settled = time.Second

// shared waits until each broker has partitions. Which one has how many is a matter of their names.
func (b *bench) shared(ctx context.Context, brokers ...string) error {
	c, err := claims.Open(natsconn.Of(b.client), namespace.BucketClaims(), claims.Options{Node: "bench"})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("the brokers do not share the partitions"))
	defer cancel()
	for {
		all, err := c.List(ctx)
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		have := map[string]int{}
		for _, i := range all {
			if strings.HasPrefix(i.Key, "partition.") {
				have[i.Node]++
			}
		}
		if !slices.ContainsFunc(brokers, func(name string) bool { return have[name] == 0 }) {
			return sleep(ctx, settled)
		}
		if sleep(ctx, 50*time.Millisecond) != nil {
			return context.Cause(ctx)
		}
	}
}

var (
	errNoKill     = errors.New("too few workflows have ended for the kill to come")
	errNoProgress = errors.New("no workflow has ended after the kill: raise -n")
)

// crash is the state of one W7.
type crash struct {
	b          *bench
	enough     int64 // that have ended are the sign for the kill
	done       atomic.Int64
	kill       chan struct{} // closed by that sign
	mu         sync.Mutex
	killedAt   time.Time
	backAt     time.Time // when the process was started again; with none, when it was killed
	last       time.Time // completion
	first      time.Time // completion after backAt
	partitions map[int]time.Time
	errs       map[string]int // refusals and timeouts on the way
}

func (b *bench) crash(ctx context.Context, l *line, victim string, again func(*bench, context.Context) error) error {
	before, err := b.activityRuns()
	if err != nil {
		return err
	}
	l.Workflows = cmp.Or(b.o.n, 2000)
	c := &crash{
		b: b, enough: max(int64(l.Workflows/3), 1), kill: make(chan struct{}), partitions: map[int]time.Time{}, errs: map[string]int{},
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed, over := make(chan error, 1), make(chan struct{})
	go func() {
		select {
		case <-c.kill:
		case <-over:
			failed <- errNoKill
			return
		}
		timer := time.AfterFunc(crashLimit, cancel)
		context.AfterFunc(ctx, func() { timer.Stop() })
		err := c.strike(ctx, victim, again)
		if err != nil {
			cancel()
		}
		failed <- err
	}()
	began := time.Now()
	// What did not end is counted, so no error ends the others.
	_, _ = atOnce(ctx, 64, l.Workflows, func(ctx context.Context, i int) error {
		c.one(ctx, fmt.Sprint("w7-", i))
		return nil
	})
	l.Seconds = time.Since(began).Seconds()
	if c.done.Load() < c.enough {
		close(over)
	}
	if err := <-failed; err != nil {
		c.complain(l)
		return err
	}
	runs, err := b.activityRuns()
	if err != nil {
		return err
	}
	c.tell(l, runs-before)
	if c.first.IsZero() {
		return errNoProgress
	}
	return nil
}

// strike kills the process, and starts it again.
func (c *crash) strike(ctx context.Context, victim string, again func(*bench, context.Context) error) error {
	cmd := c.b.procs[victim]
	c.mu.Lock()
	c.killedAt = time.Now()
	c.mu.Unlock()
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	_ = cmd.Wait() // says that it was killed
	delete(c.b.procs, victim)
	if err := sleep(ctx, onTheWire); err != nil {
		return err
	}
	c.mu.Lock()
	c.backAt = time.Now()
	c.mu.Unlock()
	if again == nil {
		return nil
	}
	return again(c.b, ctx)
}

// workerAgain and serverAgain start what was killed, the server on its store.
func (b *bench) workerAgain(context.Context) error { return b.startWorker() }
func (b *bench) serverAgain(context.Context) error { return b.launch() }

// one runs a workflow for sure: a start whose outcome is unknown is repeated under its request id, a question for the
// result as long as nobody answers.
func (c *crash) one(ctx context.Context, id string) {
	var run *drover.Run
	err := c.insist(ctx, func() (err error) {
		o := &drover.StartOptions{ID: id, RequestID: id}
		run, err = c.b.client.Start(ctx, "bench", job{Kind: "seq", N: 3, Payload: payload}, o)
		return err
	})
	if err == nil {
		err = c.insist(ctx, func() error { return run.Result(ctx, nil) })
	}
	if err != nil {
		return
	}
	c.completed(id, time.Now())
	if c.done.Add(1) == c.enough {
		close(c.kill)
	}
}

func (c *crash) insist(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil || !errors.Is(err, drover.ErrUnavailable) && !errors.Is(err, drover.ErrTimeout) || ctx.Err() != nil {
			if err != nil && ctx.Err() == nil {
				c.mu.Lock()
				c.errs[err.Error()]++
				c.mu.Unlock()
			}
			return err
		}
	}
}

func (c *crash) completed(id string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = at
	if c.backAt.IsZero() {
		return
	}
	if c.first.IsZero() {
		c.first = at
	}
	if p := subject.Partition(id, c.b.o.partitions); c.partitions[p].IsZero() {
		c.partitions[p] = at
	}
}

// tell says what was late, and what was lost or done twice.
func (c *crash) tell(l *line, runs int) {
	unfinished := float64(int64(l.Workflows) - c.done.Load())
	doubles := float64(runs) - 3*float64(c.done.Load())
	l.Unfinished, l.Doubles = &unfinished, &doubles
	c.complain(l)
	if c.first.IsZero() {
		return
	}
	l.ProgressMS = millis(c.first.Sub(c.killedAt))
	l.RestartGap = millis(c.first.Sub(c.backAt))
	for _, at := range c.partitions {
		if len(c.partitions) < c.b.o.partitions {
			break // some have had nothing to do
		}
		l.EachMS = max(l.EachMS, millis(at.Sub(c.killedAt)))
	}
	l.AllDoneMS = millis(c.last.Sub(c.killedAt))
}

// complain says why workflows have not ended well.
func (c *crash) complain(l *line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for text, n := range c.errs {
		fmt.Fprintf(os.Stderr, "bench: %s: %d workflows ended with: %s\n", l.Workload, n, text)
	}
}

// activityRuns counts what the workers have noted: a line each time that an activity ran, which outlives a kill.
func (b *bench) activityRuns() (int, error) {
	text, err := os.ReadFile(b.runs)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	return bytes.Count(text, []byte("\n")), err
}
