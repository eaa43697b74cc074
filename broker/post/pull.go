package post

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	pullExpires   = 30 * time.Second
	pullHeartbeat = 2 * time.Second
	pullRetryMin  = 50 * time.Millisecond
	pullRetryMax  = time.Second
)

// PullOptions says which work to pull.
type PullOptions struct {
	Stream   string
	Consumer string // a durable pull consumer with explicit acknowledgement
	Max      int    // how many tasks may be delivered and not yet released; at least 1
}

// Puller pulls tasks of one consumer. At most Max tasks are held at a time: delivered to fn and not released.
//
// One pull request stands at the server, for the free slots. When it is used up and slots are free, the next goes
// out at once; slots that become free meanwhile wait for it. So an idle worker waits without traffic, a busy one
// asks for many tasks at a time, and the count of what is on its way is exact. Several requests at once were left:
// the server says which request ended, not which one a task came for.
//
// It needs the right to publish to $JS.API.CONSUMER.MSG.NEXT.<stream>.<consumer> and $JS.ACK.<stream>.<consumer>.>
// and to subscribe to its inbox, nothing else. Stream and consumer need not exist yet.
type Puller struct {
	conn    *Conn
	opts    PullOptions
	fn      func(Task)
	sub     *nats.Subscription
	subject string // of the pull request
	prefix  string // "<inbox>."
	unhook  func()
	kick    chan struct{}
	cancel  context.CancelFunc
	stopped chan struct{}

	mu        sync.Mutex
	closed    bool
	held      int       // delivered and not released
	requested int       // what the standing request may still deliver
	serial    uint64    // of the standing request
	reply     string    // of the standing request
	seen      time.Time // when the standing request last showed a sign of life
	wait      time.Duration
	notBefore time.Time // when to ask again after a refusal
}

// Pull starts to pull. fn is called for one task at a time and must not block: it hands the task on. Each task
// must be released. ctx bounds nothing beyond the call.
func (c *Conn) Pull(ctx context.Context, o PullOptions, fn func(Task)) (*Puller, error) {
	if err := errors.Join(checkName("stream", o.Stream), checkName("consumer", o.Consumer), ctx.Err()); err != nil {
		return nil, err
	}
	if o.Max < 1 {
		return nil, fmt.Errorf("%w: PullOptions.Max is %d, want at least 1", ErrInvalid, o.Max)
	}
	p := &Puller{
		conn: c, opts: o, fn: fn, subject: c.api + ".CONSUMER.MSG.NEXT." + o.Stream + "." + o.Consumer,
		prefix: c.nc.NewInbox() + ".", kick: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	var err error
	if p.sub, err = c.nc.Subscribe(p.prefix+"*", p.receive); err != nil {
		return nil, fmt.Errorf("pull from %s: %w", o.Stream, fromNATS(err))
	}
	p.unhook = c.OnReconnect(p.again)
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.ask()
	go p.keep(ctx)
	if err := c.adopt(p); err != nil {
		p.Close()
		return nil, fmt.Errorf("pull from %s: %w", o.Stream, err)
	}
	return p, nil
}

// Close stops pulling. Tasks that are held stay valid. A task that is on its way from the server at this
// moment is delivered to somebody when its AckWait has passed.
func (p *Puller) Close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		<-p.stopped
		return
	}
	p.closed = true
	p.mu.Unlock()
	p.unhook()
	p.conn.disown(p)
	_ = p.sub.Unsubscribe() // it fails only when the connection is closed, and with it the subscription
	p.cancel()
	<-p.stopped
}

// Held is how many tasks are delivered and not released.
func (p *Puller) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// again forgets the standing request after a reconnect and asks anew.
func (p *Puller) again() {
	p.mu.Lock()
	p.requested, p.notBefore, p.wait = 0, time.Time{}, 0
	p.mu.Unlock()
	p.ask()
}

// ask sends a pull request for the free slots, if none stands.
func (p *Puller) ask() {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.opts.Max - p.held
	if p.closed || p.requested > 0 || free < 1 || time.Now().Before(p.notBefore) {
		return
	}
	p.serial++
	p.reply = p.prefix + strconv.FormatUint(p.serial, 36)
	body := make([]byte, 0, 96)
	body = append(body, `{"batch":`...)
	body = strconv.AppendInt(body, int64(free), 10)
	body = append(body, `,"expires":`...)
	body = strconv.AppendInt(body, int64(pullExpires), 10)
	body = append(body, `,"idle_heartbeat":`...)
	body = strconv.AppendInt(body, int64(pullHeartbeat), 10)
	body = append(body, '}')
	p.seen = time.Now()
	if err := p.conn.nc.PublishRequest(p.subject, p.reply, body); err != nil {
		p.later() // disconnected: the reconnect asks again
		return
	}
	p.requested = free
}

// later sets the time of the next attempt after a refusal. The caller holds mu.
func (p *Puller) later() {
	p.requested = 0
	p.wait = min(max(2*p.wait, pullRetryMin), pullRetryMax)
	p.notBefore = time.Now().Add(p.wait)
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// keep asks again after refusals, and when the standing request has been lost without a word.
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
		p.mu.Lock()
		next := pullHeartbeat
		if p.requested > 0 && time.Since(p.seen) > missedBeats && p.conn.Connected() {
			if n, _, err := p.sub.Pending(); err == nil && n == 0 {
				p.conn.log.WithField("list", p.opts.Stream).Debug("pull request lost, asking again")
				p.requested = 0
			}
		}
		if p.requested == 0 {
			if wait := time.Until(p.notBefore); wait > 0 {
				next = wait
			}
		}
		p.mu.Unlock()
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
	p.ask()
}

// status handles what the server says about the standing request.
func (p *Puller) status(m *nats.Msg) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.Subject != p.reply {
		return // an earlier request
	}
	p.seen = time.Now()
	status := m.Header.Get(statusHeader)
	switch status {
	case "100":
		p.wait = 0
	case "408":
		p.requested, p.wait = 0, 0
	default: // 404, 409, 503: no message, a change at the server, or no such consumer yet
		p.conn.log.WithField("list", p.opts.Stream).Debugf("pull request ended: %s %s", status, m.Header.Get("Description"))
		p.later()
	}
}

func (p *Puller) task(m *nats.Msg) {
	t := Task{Msg: p.conn.msg(m), slot: &slot{puller: p}}
	d, err := parseDelivery(m.Reply)
	if err != nil {
		p.conn.log.WithField("list", p.opts.Stream).WithField("err", err).Error("a task without a readable reply subject, dropped")
		return
	}
	t.Seq, t.Delivered, t.Time = d.stream, d.delivered, d.time
	p.mu.Lock()
	p.seen, p.wait = time.Now(), 0
	p.requested = max(p.requested-1, 0)
	// A request that was given up as lost may still deliver. What does not fit goes to somebody else.
	surplus := p.held >= p.opts.Max || p.closed
	if !surplus {
		p.held++
	}
	p.mu.Unlock()
	if surplus {
		_ = t.Nak(0) // if it cannot be sent the server delivers the task again after AckWait
		return
	}
	p.fn(t)
}

func (p *Puller) release() {
	p.mu.Lock()
	p.held--
	p.mu.Unlock()
	p.ask()
}
