package load

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

// Pressure is a load under way: its parts, each in a goroutine, how far they have come, and what
// went wrong. Parts complain by Wrong: it is the test that ends, by End.
type Pressure struct {
	t testing.TB
	Progress

	parts    sync.WaitGroup
	mu       sync.Mutex
	complain []string
}

// NewPressure returns one without parts.
func NewPressure(t testing.TB) *Pressure { return &Pressure{t: t} }

// Go begins a part.
func (p *Pressure) Go(part func()) { p.parts.Go(part) }

// Wait waits until every part has ended, well or not.
func (p *Pressure) Wait() { p.parts.Wait() }

// Reach waits until so much progress is made beyond what there is now.
func (p *Pressure) Reach(ctx context.Context, more int) {
	p.t.Helper()
	if err := p.Progress.Reach(ctx, more); err != nil {
		p.t.Fatal(err)
	}
}

// Wrong keeps a complaint for End.
func (p *Pressure) Wrong(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complain = append(p.complain, fmt.Sprintf(format, args...))
}

// EndsWell waits for the end of a run that was acknowledged, and complains unless that run has
// ended as its input wants.
func (p *Pressure) EndsWell(ctx context.Context, run *drover.Run, in Input) {
	o, err := run.Wait(ctx)
	switch {
	case err != nil:
		p.Wrong("result of %s: %v", run.ID, err)
	case o.Status != schemas.StatusCompleted || string(o.Result) != in.Want():
		p.Wrong("%s: got %s %q %s, want completed %q",
			run.ID, o.Status, o.Result, o.Reason, in.Want())
	case o.Run != run.RunID:
		p.Wrong("%s: run %s was acknowledged and run %s has ended", run.ID, run.RunID, o.Run)
	}
}

// End waits until every part has ended, and fails the test if one has complained.
func (p *Pressure) End() {
	p.t.Helper()
	p.Wait()
	for _, c := range p.complain {
		p.t.Error(c)
	}
	if p.t.Failed() {
		p.t.FailNow()
	}
}
