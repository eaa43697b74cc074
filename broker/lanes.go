package broker

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/partition/loop"
)

// lane bounds how much of a kind is under way at a time. Who waits is let in in turn.
type lane chan struct{}

func (l lane) enter() { l <- struct{}{} }

func (l lane) leave() { <-l }

// readAsync reads on a goroutine of its own and hands the answer to the loop. Reads use a
// connection of their own: a direct get keeps the connection that asked busy.
func readAsync[T any](
	b *env,
	l *loop.Loop,
	read func(context.Context) (T, error),
	then func(T, error),
) {
	onLane(b, b.readers, l, read, then)
}

// writeAsync is readAsync for what is short, and others wait for: writes of the owner, and the
// small reads that they rest on. These do not wait for loads of runs, of which there may be many
// thousands, each of many records.
func writeAsync[T any](
	b *env,
	l *loop.Loop,
	write func(context.Context) (T, error),
	then func(T, error),
) {
	onLane(b, b.writers, l, write, then)
}

func onLane[T any](
	b *env,
	on lane,
	l *loop.Loop,
	read func(context.Context) (T, error),
	then func(T, error),
) {
	b.wg.Go(func() {
		on.enter()
		defer on.leave()
		ctx, cancel := context.WithTimeout(b.ctx, readTimeout)
		defer cancel()
		v, err := read(ctx)
		l.Post(func() { then(v, err) })
	})
}

const readTimeout = 10 * time.Second
