package env

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/partition/loop"
)

// Lane bounds how much of a kind is under way at a time. Who waits is let in in turn.
type Lane chan struct{}

func (l Lane) Enter() { l <- struct{}{} }

func (l Lane) Leave() { <-l }

// ReadAsync reads on a goroutine of its own and hands the answer to the loop. Reads use a
// connection of their own: a direct get keeps the connection that asked busy.
func ReadAsync[T any](
	e *Env, l *loop.Loop, read func(context.Context) (T, error), then func(T, error),
) {
	onLane(e, e.Readers, l, read, then)
}

// WriteAsync is ReadAsync for what is short, and others wait for: writes of the owner, and the
// small reads that they rest on. These do not wait for loads of runs, of which there may be many
// thousands, each of many records.
func WriteAsync[T any](
	e *Env, l *loop.Loop, write func(context.Context) (T, error), then func(T, error),
) {
	onLane(e, e.Writers, l, write, then)
}

func onLane[T any](
	e *Env, on Lane, l *loop.Loop, read func(context.Context) (T, error), then func(T, error),
) {
	e.Work.Go(func() {
		on.Enter()
		defer on.Leave()
		ctx, cancel := context.WithTimeout(e.Background, ReadTimeout)
		defer cancel()
		v, err := read(ctx)
		l.Post(func() { then(v, err) })
	})
}

// ReadTimeout bounds each read and write of a lane.
const ReadTimeout = 10 * time.Second
