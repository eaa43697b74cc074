package env

import "sync"

// InFlight counts what is under way. Unlike a sync.WaitGroup it may be entered while somebody
// waits, as requests do that come while a broker stops: who waits has seen one moment without any.
type InFlight struct {
	mu      sync.Mutex
	n       int
	waiters []chan struct{} // closed when n is 0
}

// Run calls f on a goroutine of its own.
func (g *InFlight) Run(f func()) {
	g.mu.Lock()
	g.n++
	g.mu.Unlock()
	go func() {
		defer g.leave()
		f()
	}()
}

func (g *InFlight) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n--; g.n > 0 {
		return
	}
	for _, c := range g.waiters {
		close(c)
	}
	g.waiters = nil
}

// Idle is closed at the first moment at which nothing is under way.
func (g *InFlight) Idle() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := make(chan struct{})
	if g.n == 0 {
		close(c)
	} else {
		g.waiters = append(g.waiters, c)
	}
	return c
}
