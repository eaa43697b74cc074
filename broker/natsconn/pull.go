package natsconn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	pullExpires   = 30 * time.Second
	pullHeartbeat = 2 * time.Second
	pullRetryMin  = 50 * time.Millisecond
	pullRetryMax  = time.Second
	// goneEvery is longer than an election, during which a consumer does not answer either.
	goneEvery = 10 * time.Second
	// pausePatience is how long a task without a free slot waits for one before somebody else may
	// have it: long enough for slots that change hands in milliseconds, too short to matter to a
	// worker that idles elsewhere.
	pausePatience = 20 * time.Millisecond
	// closePatience bounds how long Close waits for what is on its way.
	closePatience = time.Second
)

// PullOptions says which work to pull.
type PullOptions struct {
	Stream string
	// Consumers are durable pull consumers with explicit acknowledgement: one, or several in order
	// of precedence, the most urgent first. No message may belong to two of them.
	Consumers []string
	// how many tasks may be delivered and not yet released, of all consumers together; at least 1
	Max int
	// Gone is called every goneEvery while the server ends all requests to a consumer, as it does
	// for one that is not there. It must not block. Defaults to none.
	Gone func()
}

// Puller pulls the tasks of a stream's consumers. At most Max tasks are held at a time: delivered
// to fn and not released.
//
// One pull request stands at the server for each consumer, for the free slots. When it is used up
// and slots are free, the next goes out at once; slots that become free meanwhile wait for it. So
// an idle worker waits without traffic, a busy one asks for many tasks at a time. Several requests
// at once on one consumer were left: the server says which request ended, not which one a task came
// for. How several consumers share the slots is told at [pullConsumer].
//
// It needs the right to publish to $JS.API.CONSUMER.MSG.NEXT.<stream>.<consumer> and
// $JS.ACK.<stream>.<consumer>.> and to subscribe to its inbox, nothing else. Stream and consumers
// need not exist yet.
type Puller struct {
	conn    *Conn
	opts    PullOptions
	fn      func(Task)
	sub     *nats.Subscription
	drained chan struct{} // closed when the subscription is
	prefix  string        // "<inbox>."
	unhook  []func()
	kick    chan struct{}
	cancel  context.CancelFunc
	stopped chan struct{}

	calling sync.Mutex // held while fn runs; before mu

	mu        sync.Mutex
	closed    bool
	held      int             // delivered and not released
	consumers []*pullConsumer // by precedence
}

// Pull starts to pull. fn is called for one task at a time and must not block: it hands the task
// on. Each task must be released. ctx bounds nothing beyond the call.
func (c *Conn) Pull(ctx context.Context, o PullOptions, fn func(Task)) (*Puller, error) {
	err := errors.Join(checkName("stream", o.Stream), ctx.Err())
	for _, name := range o.Consumers {
		err = errors.Join(err, checkName("consumer", name))
	}
	switch {
	case err != nil:
		return nil, err
	case len(o.Consumers) == 0:
		return nil, fmt.Errorf("%w: PullOptions.Consumers is empty, want at least one", ErrInvalid)
	case o.Max < 1:
		return nil, fmt.Errorf("%w: PullOptions.Max is %d, want at least 1", ErrInvalid, o.Max)
	}
	p := &Puller{
		conn: c, opts: o, fn: fn, prefix: c.nc.NewInbox() + ".", drained: make(chan struct{}),
		kick: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	for _, name := range o.Consumers {
		p.consumers = append(p.consumers, &pullConsumer{
			puller: p, consumer: name,
			subject: c.api + ".CONSUMER.MSG.NEXT." + o.Stream + "." + name, reach: p.firstReach(),
		})
	}
	if err = c.hears(); err != nil {
		return nil, fmt.Errorf("pull from %s: %w", o.Stream, err)
	}
	if p.sub, err = c.nc.Subscribe(p.prefix+"*", p.receive); err != nil {
		return nil, fmt.Errorf("pull from %s: %w", o.Stream, fromNATS(err))
	}
	p.sub.SetClosedHandler(func(string) { close(p.drained) })
	p.unhook = []func(){c.OnReconnect(p.again), c.OnRefused(p.refused)}
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.ask()
	go p.keep(ctx)
	if err := c.adopt(p); err != nil {
		p.Close()
		return nil, fmt.Errorf("pull from %s: %w", o.Stream, err)
	}
	return p, nil
}

// Close stops pulling. Tasks that are held stay valid. What was not handed to fn yet, and what is
// on its way from the server at this moment, is given back at once; on an in-process connection the
// latter is delivered to somebody when its AckWait has passed.
func (p *Puller) Close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		<-p.stopped
		return
	}
	p.closed = true
	var paused []paused
	for _, b := range p.consumers {
		paused = append(paused, b.paused...)
		b.paused = nil
	}
	p.mu.Unlock()
	giveBack(paused)
	for _, remove := range p.unhook {
		remove()
	}
	p.conn.disown(p)
	p.drain()
	p.cancel()
	<-p.stopped
}

// drain ends the subscription; until it has ended, receive gives back what comes. After it the
// server sends nothing more here: what is stored next goes to somebody who is still there.
func (p *Puller) drain() {
	// The library's drain uses its process-wide timers; see the package comment on virtual time.
	if p.conn.inProcess || p.sub.Drain() != nil {
		// it fails only when the connection is closed, and with it the subscription
		_ = p.conn.withdraw(context.Background(), p.sub)
		return
	}
	limit := time.NewTimer(closePatience)
	defer limit.Stop()
	select {
	case <-p.drained:
	case <-limit.C: // disconnected: the server gives the tasks to others by itself
	}
}

// giveBack lets the server deliver tasks to somebody else at once.
func giveBack(tasks []paused) {
	for _, t := range tasks {
		_ = t.Nak(0) // if it cannot be sent the server delivers the task again after AckWait
	}
}

// Admit makes a task of a message that came by another way than the consumers, if a slot is free
// and a request stands at each of them: then nothing was waiting there a moment ago, and what has
// come since goes first once a slot is free again. It must be released as any other; Ack,
// InProgress, Nak and Term mean nothing to its sender.
func (p *Puller) Admit(m Msg) (t Task, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.held >= p.opts.Max || p.pausing() {
		return Task{}, false
	}
	now := time.Now()
	for _, b := range p.consumers {
		if (b.requested == 0 || b.probe) && !now.Before(b.notBefore) {
			return Task{}, false
		}
	}
	p.held++
	return Task{Msg: m, Delivered: 1, slot: &slot{puller: p}}, true
}

// again forgets the standing requests after a reconnect and asks anew.
func (p *Puller) again() {
	p.mu.Lock()
	for _, b := range p.consumers {
		b.end()
		b.empty, b.silent, b.notBefore, b.wait, b.most = false, false, time.Time{}, 0, 0
	}
	p.mu.Unlock()
	p.ask()
}

// refused leaves a consumer alone for a while whose requests the server does not let this user
// send: an old permission may name one consumer only.
func (p *Puller) refused(e *RefusedError) {
	if e.Subscribe {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.consumers {
		if b.requested > 0 && e.covers(b.subject, b.reply) {
			b.deny(time.Now())
		}
	}
	p.wake()
}

// ask sends what requests are due. A task that waits and may go ahead is left to keep.
func (p *Puller) ask() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plan() != nil {
		p.wake()
	}
}

// wake lets keep look around.
func (p *Puller) wake() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// advance hands on the tasks that wait while there are slots, and asks for more.
func (p *Puller) advance() {
	for {
		p.calling.Lock()
		p.mu.Lock()
		b := p.plan()
		if b == nil {
			p.mu.Unlock()
			p.calling.Unlock()
			return
		}
		t := b.paused[0].Task
		b.paused = b.paused[1:]
		p.held++
		p.mu.Unlock()
		p.fn(t)
		p.calling.Unlock()
	}
}

// keep hands on what waits for a slot, gives back what waits too long, and asks again after
// refusals and when a standing request has been lost without a word.
func (p *Puller) keep(ctx context.Context) {
	defer close(p.stopped)
	timer := time.NewTimer(pullHeartbeat)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.kick:
		case <-timer.C:
		}
		p.advance()
		p.mu.Lock()
		now := time.Now()
		next := pullHeartbeat
		var late []paused
		for _, b := range p.consumers {
			late = append(late, b.late(now)...)
			next = min(next, b.look(now))
		}
		p.mu.Unlock()
		giveBack(late)
		p.ask()
		timer.Reset(next)
	}
}

func (p *Puller) receive(m *nats.Msg) {
	if m.Reply == "" {
		p.status(m)
	} else {
		p.task(m)
	}
	p.advance()
}

// status handles what the server says about a standing request. That of an earlier one is ignored.
func (p *Puller) status(m *nats.Msg) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.consumers {
		if b.reply == m.Subject && b.requested > 0 {
			b.status(m)
			return
		}
	}
}

func (p *Puller) task(m *nats.Msg) {
	t := Task{Msg: p.conn.msg(m), slot: &slot{puller: p}}
	log := p.conn.log.WithField("list", p.opts.Stream)
	d, err := parseDelivery(m.Reply)
	if err != nil {
		log.WithField("err", err).Error("a task without a readable reply subject, dropped")
		return
	}
	t.Seq, t.Delivered, t.Time = d.stream, d.delivered, d.time
	p.calling.Lock()
	defer p.calling.Unlock()
	p.mu.Lock()
	b := p.consumerOf(d.consumer)
	if b == nil || p.closed {
		p.mu.Unlock()
		giveBack([]paused{{Task: t}})
		return
	}
	b.delivered()
	// More may come than there are slots: requests of several consumers stand at once, and one that
	// was given up as lost may still deliver.
	if p.held >= p.opts.Max || p.pausing() {
		b.pause(t)
		p.mu.Unlock()
		return
	}
	p.held++
	p.mu.Unlock()
	p.fn(t)
}

func (p *Puller) release() {
	p.mu.Lock()
	p.held--
	p.mu.Unlock()
	p.ask()
}
