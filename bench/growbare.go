package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/freeport"
)

// bare measures what the server's NATS needs by itself: the same program, with nothing to do and a namespace of its own,
// gets streams of the same settings with as many messages of the same mean size on the same subjects.
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
	var had copied
	for i, p := range points {
		if err := had.repeat(ctx, js, p.At, worlds[i]); err != nil {
			return fmt.Errorf("the bare streams of %d workflows: %w", p.At, err)
		}
		if err := sleep(ctx, restAsleep); err != nil {
			return err
		}
		if p.BareRSS, p.BareLive, err = b.readMemory(); err != nil {
			return err
		}
		p.compare(p.At, emptyRSS, before.rss)
		if p.Rested == nil {
			continue
		}
		if p.Rested.BareRSS, p.Rested.BareLive, err = b.restedMemory(ctx); err != nil {
			return err
		}
		p.Rested.compare(p.At, emptyRSS, before.rss)
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

// copied is what the bare streams hold: so many of the workflows that wait, of a world of histories and alarms, two streams for each partition.
type copied struct {
	waiting int
	of      world
}

// repeat makes the bare streams grow to another world. How much NATS keeps for a subject depends on the others: on what they have in common, and in
// which order they came. So the workflows that wait have the ids that fill gave them, in the same order, and record and alarm follow each other; behind
// them come those of bursts, with ids like theirs. Considered: as many subjects of the same length that count upwards. NATS needs 86 bytes a workflow less for these.
func (c *copied) repeat(ctx context.Context, js jetstream.JetStream, waiting int, to world) error {
	all := make([]growing, len(to))
	for i, info := range to {
		var had jetstream.StreamState
		if c.of != nil {
			had = c.of[i].State
		} else if _, err := js.CreateStream(ctx, bareConfig(&info.Config)); err != nil {
			return err
		}
		all[i] = newGrowing(had, info.State)
	}
	store := func(g *growing, subject string) error {
		for range g.next() {
			if _, err := js.PublishAsync(subject, g.body[:max(len(g.body)-len(subject), 1)], jetstream.WithStallWait(10*time.Second)); err != nil {
				return err
			}
		}
		return nil
	}
	for partition, wid := range bareIDs(c.waiting, waiting, len(to)/2, func(p int) bool { return all[2*p].left+all[2*p+1].left > 0 }) {
		run := ulid.Make().String()
		if err := errors.Join(store(&all[2*partition], namespace.History(partition, wid, run)), store(&all[2*partition+1], namespace.Alarm(partition, wid, run))); err != nil {
			return err
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-ctx.Done():
		return ctx.Err()
	}
	c.waiting, c.of = waiting, to
	return nil
}

// bareConfig is that of a bare stream: what the server's own has, as far as it concerns how messages are kept.
func bareConfig(c *jetstream.StreamConfig) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: "bare" + strings.TrimPrefix(c.Name, "drover"), Subjects: c.Subjects, Storage: c.Storage, Compression: c.Compression, AllowDirect: c.AllowDirect,
		MaxMsgsPerSubject: c.MaxMsgsPerSubject, Duplicates: c.Duplicates,
	}
}

// bareIDs are the workflows of the bare streams with their partitions: first those that wait, then those of bursts, as long as a partition has more.
func bareIDs(from, upTo, partitions int, more func(partition int) bool) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i := from; i < upTo; i++ {
			if wid := fmt.Sprint(idlePrefix, i); !yield(subject.Partition(wid, partitions), wid) {
				return
			}
		}
		for p := range partitions {
			for more(p) {
				if !yield(p, ulid.Make().String()) {
					return
				}
			}
		}
	}
}

// growing is a bare stream that is made to grow: by so many subjects, and by messages that are spread evenly over them.
type growing struct {
	left     uint64 // subjects
	messages uint64
	body     []byte // as long as a message with its subject
}

func newGrowing(from, to jetstream.StreamState) growing {
	g := growing{left: to.NumSubjects - min(from.NumSubjects, to.NumSubjects), messages: to.Msgs - min(from.Msgs, to.Msgs)}
	if g.messages > 0 {
		// What the server counts as a message's bytes has 30 more, and headers, which are in the body here.
		size := int((to.Bytes-min(from.Bytes, to.Bytes))/g.messages) - 30
		g.body = bytes.Repeat([]byte("x"), max(size, 1))
	}
	return g
}

// next takes a subject, and gives how many messages it gets; none if there are no subjects left.
func (g *growing) next() (messages uint64) {
	if g.left == 0 {
		return 0
	}
	messages = g.messages / g.left
	g.left--
	g.messages -= messages
	return messages
}
