package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/ops/recycle"
	"github.com/droverhq/drover/schemas"
)

// generation is what the roles of a node have from one recycle to the next: their connections,
// which are no other's. So a role that hangs can be cut off: without its connections it holds no
// claim any more and writes nothing, and whatever it left is claimed as after a crash.
//
// A generation begins when the one before has given its partitions back. That one passes on what it
// was asked and has not answered, which goes to the owners of this one: so its last goroutines may
// end a little later.
type generation struct {
	node *node
	home chan struct{} // closed when there are roles for the home

	mu      sync.Mutex
	severed bool
	next    int
	conns   map[int]*natsconn.Conn
	brokers []*broker.Broker
}

var errSevered = errors.New("the roles were cut off")

func newGeneration(n *node) *generation {
	return &generation{node: n, conns: map[int]*natsconn.Conn{}, home: make(chan struct{})}
}

// dial opens a connection of this generation.
func (l *generation) dial(ctx context.Context, name string) (*natsconn.Conn, error) {
	l.mu.Lock()
	severed := l.severed
	l.mu.Unlock()
	if severed {
		return nil, errSevered
	}
	conn, err := l.node.dial(ctx, name)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	if l.severed {
		l.mu.Unlock()
		conn.Close()
		return nil, errSevered
	}
	id := l.next
	l.next++
	l.conns[id] = conn
	l.mu.Unlock()
	conn.OnClose(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.conns, id)
	})
	return conn, nil
}

// sever closes all connections, and those that are opened later.
func (l *generation) sever() {
	l.mu.Lock()
	l.severed = true
	open := l.conns
	l.conns = map[int]*natsconn.Conn{}
	l.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
}

// serve notes that there are roles for a namespace. A nil broker is none.
func (l *generation) serve(b *broker.Broker, isHome bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b != nil {
		l.brokers = append(l.brokers, b)
	}
	if isHome && !closed(l.home) {
		close(l.home)
	}
}

// working are the brokers that own partitions.
func (l *generation) working() []*broker.Broker {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.brokers),
		func(b *broker.Broker) bool { return len(b.Owned()) == 0 })
}

// runGenerations runs the roles until ctx ends or one of them does, generation after generation.
func (n *node) runGenerations(ctx context.Context) error {
	var former sync.WaitGroup // generations that have given back their partitions
	defer func() { former.Wait(); close(n.ended) }()
	ready := sync.OnceFunc(func() {
		n.serving.Store(true)
		n.ready()
	})
	parts := map[string]runner{
		"namespace " + string(n.home.space.Name): runnerFunc(n.home.stay),
		"namespaces": runnerFunc(func(ctx context.Context) error {
			return n.attend(ctx, ready)
		}),
	}
	for {
		t, err := n.runGeneration(ctx, &former, parts)
		if t == nil || err != nil || ctx.Err() != nil {
			return err
		}
		next := newGeneration(n)
		n.generation.Store(next)
		n.began(ctx, t.slot)
		t.generation <- next
		parts = map[string]runner{"namespaces": runnerFunc(func(ctx context.Context) error {
			return n.attendAgain(ctx, func() { close(t.back) })
		})}
	}
}

// runGeneration runs parts until ctx ends or one of them does, whose error it returns, or until it
// is their turn in a recycle.
func (n *node) runGeneration(
	ctx context.Context, former *sync.WaitGroup, parts map[string]runner,
) (*turn, error) {
	l := n.generation.Load()
	work, end := context.WithCancelCause(ctx)
	defer end(nil)
	var wg sync.WaitGroup
	for name, r := range parts {
		wg.Go(func() {
			if err := r.Run(work); err != nil && work.Err() == nil {
				end(fmt.Errorf("%s: %w", name, err))
			} else if work.Err() == nil {
				end(fmt.Errorf("%s: %w", name, errRoleEnded))
			}
		})
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()

	select {
	case <-work.Done():
	case t := <-n.turns:
		end(ErrRecycled)
		stopped := time.Now()
		l.giveBack(ended, n.o.DrainTimeout)
		former.Go(func() { l.await(ended, n.o.DrainTimeout-time.Since(stopped)) })
		return t, nil
	}
	if ctx.Err() != nil {
		<-ended // whoever has ended ctx bounds it
		return nil, nil
	}
	failure := context.Cause(work)
	limit := time.NewTimer(failureTimeout)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C:
	}
	return nil, failure
}

// giveBack waits until the brokers own nothing any more or the roles have ended. If that takes too
// long they are cut off (S2-1).
func (l *generation) giveBack(ended <-chan struct{}, most time.Duration) {
	limit := time.NewTimer(most)
	defer limit.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			if l.begun() && len(l.working()) == 0 {
				return
			}
		case <-limit.C:
			l.cutOff()
			return
		}
	}
}

// await waits until the roles have ended, cuts them off when it takes too long, and then gives them
// a moment to notice.
func (l *generation) await(ended <-chan struct{}, most time.Duration) {
	for _, limit := range []time.Duration{max(most, 0), failureTimeout} {
		t := time.NewTimer(limit)
		select {
		case <-ended:
			t.Stop()
			l.sever()
			return
		case <-t.C:
		}
		l.cutOff()
	}
	l.node.log.Error(
		"a role that was cut off does not end; it holds nothing any more, and the roles have begun anew beside it")
}

// cutOff is sever for roles that have not ended in time.
func (l *generation) cutOff() {
	l.mu.Lock()
	severed := l.severed
	l.mu.Unlock()
	if !severed {
		l.node.log.Error("the roles did not stop in time for a recycle: they are cut off")
		l.sever()
	}
}

// begun tells whether there are brokers whose partitions can be looked at.
func (l *generation) begun() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.brokers) > 0
}

// attend calls ready once when the node is, and looks after the namespaces other than its home.
func (n *node) attend(ctx context.Context, ready func()) error {
	if !n.o.OnlyNamespace {
		return newTenants(n).watch(ctx, ready)
	}
	if n.home.awaitBroker(ctx) {
		ready()
	}
	<-ctx.Done()
	return nil
}

// attendAgain is attend for a later generation, which serves the home as it does other namespaces.
func (n *node) attendAgain(ctx context.Context, ready func()) error {
	s := newTenants(n)
	if !n.o.OnlyNamespace {
		return s.watch(ctx, ready)
	}
	ready = sync.OnceFunc(ready)
	for ctx.Err() == nil {
		err := s.serveHome(ctx, ready)
		if err != nil && ctx.Err() == nil {
			n.log.WithError(err).Errorf("the namespace cannot be served; trying again within %v",
				studyEvery)
		}
		sleep.For(ctx, studyEvery)
	}
	return nil
}

// serveHome serves the home alone until ctx ends or it fails.
func (s *tenants) serveHome(ctx context.Context, ready func()) error {
	info, err := topology.Lookup(ctx, s.node.conn, s.node.home.space.Name)
	if err != nil {
		return err
	}
	t := newTenant(s.node, s.log, nil)
	t.seen = info
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		select {
		case <-t.built:
			if t.awaitBroker(ctx) {
				ready()
			}
		case <-t.ended:
		}
	})
	defer close(t.ended)
	if err := s.serve(ctx, t); err != nil {
		t.failed = true
		return err
	}
	return nil
}

// began notes that the roles begin now, or at a slot if that is later.
func (n *node) began(ctx context.Context, slot time.Time) {
	now := recycle.Now(ctx, n.register)
	if slot.After(now) {
		now = slot
	}
	n.since.Store(int64(schemas.At(now)))
}
