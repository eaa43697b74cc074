package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/freeport"
)

const (
	// outstandingFill is how many starts are outstanding while the world grows.
	outstandingFill = 256
	idlePrefix      = "idle-"
	// idleFor is the timer of an idle workflow.
	idleFor = 300 * 24 * time.Hour
	// restAsleep is how long everything is left alone before memory is read: the master reads new records every half minute, the NATS
	// server keeps what was read for ten seconds, and what was kept goes back to the machine behind that.
	restAsleep = 50 * time.Second
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

// bare measures what the server's NATS needs by itself: the same program, with nothing to do and a namespace of its own,
// gets streams of the same settings with as many messages of the same mean size on as many subjects of the same length.
func (g *grower) bare(ctx context.Context, points []*point, worlds []world, emptyRSS int64) (err error) {
	b, err := g.bench("bare", 1)
	defer func() { err = b.done(err) }()
	if err != nil {
		return err
	}
	conn, err := b.startBare(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(4096))
	if err != nil {
		return err
	}
	before, err := usageOf(b.procs["server"].Process.Pid)
	if err != nil {
		return err
	}
	var had world
	for i, p := range points {
		if err := repeat(ctx, js, had, worlds[i]); err != nil {
			return fmt.Errorf("the bare streams of %d workflows: %w", p.At, err)
		}
		had = worlds[i]
		if err := sleep(ctx, restAsleep); err != nil {
			return err
		}
		u, err := usageOf(b.procs["server"].Process.Pid)
		if err != nil {
			return err
		}
		p.BareRSS = u.rss
		p.Beyond = float64((p.RSS-emptyRSS)-(u.rss-before.rss)) / float64(p.At)
		if p.BareLive, err = b.live(); err != nil {
			return err
		}
		p.BeyondLive = float64(p.Live-p.BareLive) / float64(p.At)
	}
	return nil
}

// startBare starts a server that only keeps streams.
func (b *bench) startBare(ctx context.Context) (*nats.Conn, error) {
	port, err := freeport.Loopback()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(b.binary, "server", "--store", b.store(), "--profile", b.o.profile, "--port", strconv.Itoa(port),
		"--partitions", "1", "--namespace", "bare", "--only-namespace", "--roles", "timers")
	b.trace(cmd)
	if err := b.spawn("server", cmd); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		conn, err := nats.Connect(fmt.Sprintf("nats://127.0.0.1:%d", port), nats.Name("bench"))
		if err == nil {
			return conn, sleep(ctx, time.Second)
		}
		if sleep(ctx, 10*time.Millisecond) != nil {
			return nil, errors.Join(fmt.Errorf("the bare server is not ready: %w", err), b.logs())
		}
	}
}

// repeat makes the bare streams grow from one world to the next. The messages of a subject follow each other, as those of a
// workflow do that starts and falls asleep.
func repeat(ctx context.Context, js jetstream.JetStream, from, to world) error {
	for i, info := range to {
		c := info.Config
		root := "bare" + c.Name[len("drover"):]
		own := jetstream.StreamConfig{
			Name: root, Subjects: []string{root + ".>"}, Storage: c.Storage, Compression: c.Compression, AllowDirect: c.AllowDirect,
			MaxMsgsPerSubject: c.MaxMsgsPerSubject, Duplicates: c.Duplicates,
		}
		var done jetstream.StreamState
		if from != nil {
			done = from[i].State
		} else if _, err := js.CreateStream(ctx, own); err != nil {
			return err
		}
		subjects, messages := info.State.NumSubjects, info.State.Msgs
		if subjects <= done.NumSubjects || messages <= done.Msgs {
			continue
		}
		subjects, messages = subjects-done.NumSubjects, messages-done.Msgs
		// What the server counts as a message's bytes has its subject and 22 more; headers count as a part of the body here.
		size := int((info.State.Bytes-done.Bytes)/messages) - len(root) - 60
		body := []byte(strings.Repeat("x", max(size, 1)))
		sent := uint64(0)
		for n := range subjects {
			name := fmt.Sprintf("%s.%s%08d.%026d", root, idlePrefix, done.NumSubjects+n, n)
			for ; sent < messages*(n+1)/subjects; sent++ {
				if _, err := js.PublishAsync(name, body, jetstream.WithStallWait(10*time.Second)); err != nil {
					return err
				}
			}
		}
		select {
		case <-js.PublishAsyncComplete():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
