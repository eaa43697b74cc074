package workflow

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/droverhq/drover/decider/workflow/internal/machine"
	"github.com/droverhq/drover/schemas"
)

// Now is the time of the run: that of the event that the code has seen last. It does not go on
// while code runs.
func Now(ctx Context) time.Time { return ctx.run.m.Now() }

// Sleep waits for d of the run's time, over every crash. It returns the error of the context if
// that is canceled before.
func Sleep(ctx Context, d time.Duration) error {
	_, err := Timer(ctx, d).Get(ctx)
	return err
}

// SleepUntil is Sleep until a point in time.
func SleepUntil(ctx Context, at time.Time) error {
	_, err := timer(ctx, at).Get(ctx)
	return err
}

// Timer returns a future that is ready after d.
func Timer(ctx Context, d time.Duration) *Future[struct{}] { return timer(ctx, Now(ctx).Add(d)) }

func timer(ctx Context, at time.Time) *Future[struct{}] {
	f := ctx.run.m.Timer(ctx.scope, schemas.At(at))
	return &Future[struct{}]{f: f, result: func() (struct{}, error) {
		if f.Outcome().Kind == machine.Canceled {
			return struct{}{}, cmp.Or(ctx.scope.Err(), ErrCanceled)
		}
		return struct{}{}, ended(ctx, "timer", f)
	}}
}

// Rand returns random numbers that a replay repeats. Each coroutine has its own; keep what it
// returns, since it begins anew each time.
func Rand(ctx Context) *rand.Rand {
	path, n := ctx.run.m.Draw()
	h := fnv.New64a()
	_, _ = h.Write([]byte(ctx.run.info.Run + "\x00" + path))
	return rand.New(rand.NewPCG(h.Sum64(), n)) //nolint:gosec // it is to be repeated
}

// UUID returns a random UUID, of version 4, that a replay repeats.
func UUID(ctx Context) string {
	r := Rand(ctx)
	high, low := r.Uint64(), r.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", high>>32, high>>16&0xffff, high&0xfff,
		low>>48&0x3fff|0x8000, low&0xffff_ffff_ffff)
}
