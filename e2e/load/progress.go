package load

import (
	"context"
	"fmt"
	"sync"
)

// Progress counts what a load has got done, such as acknowledged starts and signals, and ends. Its
// zero value is good, and several goroutines may use it.
type Progress struct {
	mu    sync.Mutex
	done  int
	marks []mark // whoever waits
}

type mark struct {
	at      int
	reached chan struct{}
}

// Step counts one more.
func (p *Progress) Step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	kept := p.marks[:0]
	for _, m := range p.marks {
		if p.done >= m.at {
			close(m.reached)
			continue
		}
		kept = append(kept, m)
	}
	p.marks = kept
}

// Reach waits until so much progress is made beyond what there is now.
func (p *Progress) Reach(ctx context.Context, more int) error {
	if more <= 0 {
		return nil
	}
	p.mu.Lock()
	m := mark{at: p.done + more, reached: make(chan struct{})}
	p.marks = append(p.marks, m)
	p.mu.Unlock()
	select {
	case <-m.reached:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no progress: %w", context.Cause(ctx))
	}
}
