package faultproxy

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Direction is one half of a connection.
type Direction int

// The directions.
const (
	// ToServer is from whoever connects to the target.
	ToServer Direction = iota + 1
	// ToClient is the way back.
	ToClient
)

// dialTimeout bounds a connection to the target, which is on this machine.
const dialTimeout = 5 * time.Second

// Proxy passes connections on to one target. See the package for what it can do to them.
type Proxy struct {
	target   string
	listener net.Listener
	counts   counters
	wg       sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	faults  faults
	changed chan struct{} // closed and made anew whenever faults change
	links   map[*link]struct{}
}

// faults is what happens to bytes at this moment.
type faults struct {
	cut           bool
	silent        [ToClient + 1]bool // bytes vanish
	stalled       [ToClient + 1]bool // bytes are held
	delay, jitter time.Duration

	dropReplies func(subject string) bool
	duplicate   func(subject string) bool
	copyAfter   time.Duration
	postpone    func(subject string) bool
	postponeBy  time.Duration
}

type counters struct{ connections, cuts, vanished, replies, copies, postponed atomic.Int64 }

// Counts is what a proxy has done since it began.
type Counts struct {
	Connections    int64 // passed on to the target
	Cuts           int64 // connections that were closed or refused
	BytesVanished  int64
	RepliesDropped int64
	Duplicated     int64
	Postponed      int64
}

// New listens on a free port of loopback and passes connections on to target, "host:port". The
// target need not be there yet: a connection that finds nobody is closed.
func New(target string) (*Proxy, error) {
	if _, _, err := net.SplitHostPort(target); err != nil {
		return nil, fmt.Errorf("faultproxy: target %q: want host:port: %w", target, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	p := &Proxy{
		target: target, listener: l, changed: make(chan struct{}), links: map[*link]struct{}{},
	}
	p.wg.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens, "127.0.0.1:port".
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Counts tells what was done up to now. Compare two of them to see whether a fault has met
// anything.
func (p *Proxy) Counts() Counts {
	c := &p.counts
	return Counts{
		Connections: c.connections.Load(), Cuts: c.cuts.Load(), BytesVanished: c.vanished.Load(),
		RepliesDropped: c.replies.Load(), Duplicated: c.copies.Load(),
		Postponed: c.postponed.Load(),
	}
}

// Cut closes all connections and refuses new ones: each is closed before a byte has passed.
func (p *Proxy) Cut() {
	p.set(func(f *faults) { f.cut = true })
	p.closeLinks(func(*link) bool { return true })
}

// Break closes all connections once; new ones pass.
func (p *Proxy) Break() { p.closeLinks(func(*link) bool { return true }) }

// HalfOpen lets the bytes of one direction vanish, and the end of the stream with them. The
// connections stay, and the other direction works.
func (p *Proxy) HalfOpen(d Direction) { p.set(func(f *faults) { f.silent[d] = true }) }

// Stall holds the bytes of one direction back. After Heal they arrive, however late: as after a
// partition that TCP has outlived.
func (p *Proxy) Stall(d Direction) { p.set(func(f *faults) { f.stalled[d] = true }) }

// Delay makes both directions slow: each read takes d and up to jitter more. The order stays.
func (p *Proxy) Delay(d, jitter time.Duration) {
	p.set(func(f *faults) { f.delay, f.jitter = d, jitter })
}

// DropReplies loses the answer to each message of a client for whose subject match reports true: it
// is executed, and the caller never learns of it. Of several answers to one message, the first is
// lost. A nil match ends the fault.
//
// Functions of this kind are called in the order of the messages of one connection, but by several
// connections at once.
func (p *Proxy) DropReplies(match func(subject string) bool) {
	p.set(func(f *faults) { f.dropReplies = match })
}

// Duplicate sends each matching message of a client twice, the copy so much later: directly after
// it with 0. The copy asks for no answer.
func (p *Proxy) Duplicate(match func(subject string) bool, after time.Duration) {
	p.set(func(f *faults) { f.duplicate, f.copyAfter = match, after })
}

// Postpone holds each matching message of a client back for d, while those after it pass.
func (p *Proxy) Postpone(match func(subject string) bool, d time.Duration) {
	p.set(func(f *faults) { f.postpone, f.postponeBy = match, d })
}

// Heal ends all faults. Connections that have lost bytes are closed.
func (p *Proxy) Heal() {
	p.set(func(f *faults) { *f = faults{} })
	p.closeLinks(func(l *link) bool { return l.holed.Load() })
}

// Close ends the proxy and all its connections.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.closeLinks(func(*link) bool { return true })
	p.wg.Wait()
	return err
}

func (p *Proxy) set(change func(*faults)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.faults)
	close(p.changed)
	p.changed = make(chan struct{})
}

// now returns the faults and a channel that is closed when they change.
func (p *Proxy) now() (faults, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults, p.changed
}

func (p *Proxy) closeLinks(which func(*link) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if which(l) {
			p.counts.cuts.Add(1)
			l.close()
		}
	}
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of descriptors, for example. Whoever connects tries again.
			time.Sleep(10 * time.Millisecond)
			continue
		}
		p.wg.Go(func() { p.pass(c) })
	}
}

// pass serves one connection to its end.
func (p *Proxy) pass(client net.Conn) {
	if f, _ := p.now(); f.cut {
		p.counts.cuts.Add(1)
		client.Close()
		return
	}
	server, err := net.DialTimeout("tcp", p.target, dialTimeout)
	if err != nil {
		client.Close()
		return
	}
	l := &link{
		proxy: p, client: client, server: server, done: make(chan struct{}),
		unwanted: map[string]struct{}{},
	}
	if !p.add(l) {
		l.close()
		return
	}
	p.counts.connections.Add(1)
	var wg sync.WaitGroup
	for _, d := range []Direction{ToServer, ToClient} {
		wg.Go(func() { l.pump(d) })
	}
	wg.Wait()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// add reports false if the proxy was cut or closed while the connection was made.
func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.faults.cut {
		return false
	}
	p.links[l] = struct{}{}
	return true
}
