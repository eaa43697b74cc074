package activity

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/broker/clock"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/goroutines"
	"github.com/droverhq/drover/schemas"
)

// drainGrace is how long functions have to return once their context was cancelled at the end of a
// drain. A success that comes in that time is still reported.
const drainGrace = time.Second

// errTold ends a Run that was told to drain on its control subject.
var errTold = errors.New("the worker was told to drain")

// term is one Run of a worker.
//
// Two contexts live longer than the one that Run was given. The functions have the context "work",
// which ends with the drain; the protocol around them has "wire", which outlives it by drainGrace,
// so that a last outcome can be stored.
type term struct {
	*Worker

	links
	leave        []func()    // the deciders of this process
	closed       atomic.Bool // it cannot be asked, or cannot answer
	clock        clock.Server
	ownerChanges ownerChanges
	suspension   suspension
	nonces       nonces
	drainAsked   drainRequest
	openings     map[string]opening // by list
	bare         atomic.Bool        // a task without its body has been told of

	crew     *goroutines.Pool[job]
	wg       sync.WaitGroup // one for each delivery
	returned atomic.Int64   // tasks handed back because of the drain

	mu       sync.Mutex
	draining bool
	live     map[*delivery]*attempt // nil while it has not begun
	// deliveries that run, or are asked for, by token; see take
	running map[string]int
	asking  map[string]chan schemas.Permission // by nonce
	answers map[string]struct{}                // inboxes of those who were answered, see respond

	unregistered unregisteredTasks
}

// links are what a term has of its connection. The zero value has none.
type links struct {
	outbox  *natsconn.Outbox
	owners  *natsconn.Outbox // of workflows, for outcomes: see directreport.go
	inbox   string           // where permissions come in
	sub     natsconn.Subscription
	told    natsconn.Subscription // to the control subject
	unwatch func()                // see again.go
}

// nonces tell deliveries apart.
type nonces struct {
	prefix string // of every nonce of this term
	serial atomic.Uint64
}

func (n *nonces) next() string { return n.prefix + strconv.FormatUint(n.serial.Add(1), 36) }

func newTerm(w *Worker) (*term, error) {
	s := &term{
		Worker: w, suspension: suspension{Pace: clock.PaceOf(time.Now())},
		nonces:     nonces{prefix: rand.Text()[:12] + "-"},
		links:      links{inbox: w.conn.NATS().NewInbox()},
		drainAsked: drainRequest{to: make(chan time.Duration, 1), limit: w.opts.DrainTimeout},
		live:       make(map[*delivery]*attempt), running: make(map[string]int),
		asking:   make(map[string]chan schemas.Permission),
		openings: make(map[string]opening, len(w.opts.Lists)),
	}
	for _, list := range w.opts.Lists {
		s.openings[list] = newOpening()
	}
	s.crew = goroutines.New(mostIdle, func(j job) { s.handle(j.work, j.wire, j.delivery) })
	if err := s.connect(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// connect makes what the term needs of its connection.
func (s *term) connect() (err error) {
	if s.outbox, err = s.conn.NewOutbox(natsconn.OutboxOptions{}); err != nil {
		return err
	}
	if s.owners, err = s.conn.NewOutbox(
		natsconn.OutboxOptions{
			Timeout: directPatience, Grace: directGrace, Answer: outcomeTaken,
		}); err != nil {
		return err
	}
	if s.sub, err = s.conn.Subscribe(s.inbox, "", s.permitted); err != nil {
		return err
	}
	if s.told, err = s.conn.Subscribe(s.ns.Control(s.opts.Identity), "", s.control); err != nil {
		return err
	}
	s.unwatch, err = s.watch()
	return err
}

func (s *term) close() {
	s.links.close()
	s.crew.Close()
}

// close ends what connect has made, all of it or the first of it.
func (l *links) close() {
	if l.unwatch != nil {
		l.unwatch()
	}
	for _, sub := range []natsconn.Subscription{l.told, l.sub} {
		if sub != nil {
			// it fails only when the connection is closed, and with it the subscription
			_ = sub.Close()
		}
	}
	for _, b := range []*natsconn.Outbox{l.owners, l.outbox} {
		if b != nil {
			b.Close()
		}
	}
}

func (s *term) run(ctx context.Context) error {
	wire, hangUp := context.WithCancelCause(context.WithoutCancel(ctx))
	defer hangUp(ErrDrained)
	work, cut := context.WithCancelCause(wire)
	defer cut(ErrDrained)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	ctx, end := s.untilRefused(ctx)
	defer end()
	ctx, obey := context.WithCancelCause(ctx)
	defer obey(nil)
	// a worker that is given nothing any more would look healthy
	defer s.conn.OnClose(func() { obey(natsconn.ErrClosed) })()
	helpers.Go(func() {
		select {
		case limit := <-s.drainAsked.to:
			s.drainAsked.limit = cmp.Or(limit, s.drainAsked.limit)
			obey(errTold)
		case <-ctx.Done():
		}
	})
	pullers := make([]*natsconn.Puller, 0, len(s.opts.Lists))
	var offers []natsconn.Subscription
	stop := func() {
		s.hearOut(offers)
		var closing sync.WaitGroup
		for _, p := range pullers {
			closing.Go(p.Close)
		}
		closing.Wait()
	}
	for i, list := range s.opts.Lists {
		o := natsconn.PullOptions{
			Stream: s.ns.StreamTasks(list), Consumers: subject.Consumers(), Max: s.opts.share(i),
			Gone: func() { once(s.openings[list].gone) },
		}
		p, err := s.conn.Pull(context.WithoutCancel(ctx), o,
			func(t natsconn.Task) { s.accept(work, wire, list, t) })
		if err != nil {
			stop()
			hangUp(ErrDrained)
			return fmt.Errorf("activity worker: %w", err)
		}
		pullers = append(pullers, p)
		sub, err := s.hear(list, p, func(d *delivery) bool { return s.begin(work, wire, d) })
		if err != nil {
			stop()
			hangUp(ErrDrained)
			return fmt.Errorf("activity worker: %w", err)
		}
		offers = append(offers, sub)
	}
	for _, list := range s.opts.Lists {
		helpers.Go(func() { s.open(ctx, list, s.openings[list]) })
	}
	<-ctx.Done()
	stop()
	return unlessCut(ctx, s.drain(cut, hangUp))
}

// job is what a goroutine of the crew handles.
type job struct {
	work, wire context.Context
	delivery   *delivery
}

// mostIdle bounds the goroutines that wait for tasks.
const mostIdle = 256

// accept takes a pulled task. It is called by the connection's goroutine, so the work happens in
// another.
func (s *term) accept(work, wire context.Context, list string, t natsconn.Task) {
	s.clock.Observe(t.Time, time.Now())
	d := &delivery{Task: t, term: s, list: list}
	if !s.begin(work, wire, d) {
		d.settle(giveBack, 0)
		t.Release()
	}
}

// begin handles a delivery in another goroutine, unless the worker drains.
func (s *term) begin(work, wire context.Context, d *delivery) bool {
	s.mu.Lock()
	if s.draining {
		s.mu.Unlock()
		return false
	}
	s.live[d] = nil
	s.wg.Add(1)
	s.mu.Unlock()
	if !d.offered {
		d.keep(s.opts.KeepAlive)
	}
	s.crew.Do(job{work, wire, d})
	return true
}

// handle does everything for one delivery.
func (s *term) handle(work, wire context.Context, d *delivery) {
	defer func() {
		if !d.elsewhere {
			s.done(d)
		}
	}()
	if err := d.decode(); err != nil {
		if !s.stripped(d) {
			s.bury(wire, d, err)
		}
		return
	}
	now := time.Now()
	s.wasSuspended(now)
	stale := s.stale(d, now)
	d.late = s.tooLate(d.task, now)
	h := s.handlers[d.task.Type]
	if h == nil {
		s.returnUnregistered(d)
		return
	}
	d.nonce = s.nonces.next()
	again := d.Delivered > 1
	unsure := again || stale || d.late || s.ownerChanges.concern(d.task)
	ask := unsure || d.task.NotIdempotent
	if s.take(d, d.task.Token) && !again && (ask || d.offered) {
		s.leaveToDuplicate(d)
		return
	}
	if ask && !s.permission(wire, d, !unsure) {
		return
	}
	if stale { // it was not, if the server's clock was set back
		s.learn(d, now)
	}
	s.attempt(work, wire, d, h)
}

// done gives a delivery's slot back. What was not settled by now is left to the server, which
// delivers it again when the lease has run out.
func (s *term) done(d *delivery) {
	d.forget()
	s.mu.Lock()
	delete(s.live, d)
	s.letGo(d)
	s.mu.Unlock()
	d.Release()
	s.wg.Done()
}

// tooLate tells whether the service has given up on the activity by the estimate of its clock.
// Whether it has the owner knows: the estimate is ahead if the server's clock was set back, or that
// of another server was heard which is fast.
func (s *term) tooLate(t *schemas.ActivityTask, now time.Time) bool {
	return t.CloseBy != 0 && !s.clock.Now(now).Before(t.CloseBy.Time())
}

// drain waits for what runs, as long as it may.
func (s *term) drain(cut, hangUp context.CancelCauseFunc) error {
	s.mu.Lock()
	s.draining = true
	n := len(s.live)
	s.mu.Unlock()
	s.log.Debugf("activity worker stops; %d tasks are in hand", n)
	idle := make(chan struct{})
	go func() { s.wg.Wait(); close(idle) }()
	if waited(idle, s.drainAsked.limit) {
		return nil
	}
	cut(ErrDrained)
	waited(idle, drainGrace)
	hangUp(ErrDrained)
	var late sync.WaitGroup
	s.mu.Lock()
	for d := range s.live { // functions that do not heed their context
		if d.offered && d.taken == "" {
			// its handling has not begun; its owner hears nothing, and puts it on the list
			d.forget()
			continue
		}
		late.Go(d.giveBack)
	}
	s.mu.Unlock()
	late.Wait()
	if n := s.returned.Load(); n > 0 {
		return fmt.Errorf(
			"%w: %d tasks had not ended within %v and were handed back to their lists",
			ErrDrainTimeout, n, s.drainAsked.limit)
	}
	return nil
}

// waited tells whether ch was closed within d.
func waited(ch <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ch:
		return true
	case <-t.C:
		return false
	}
}

// passed tells whether d has passed before stop was closed or ctx ended.
func passed(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-stop:
	case <-ctx.Done():
	}
	return false
}
