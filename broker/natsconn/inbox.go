package natsconn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/internal/sleep"
)

const (
	firstAttempt  = 2 * time.Second
	retryWait     = 100 * time.Millisecond
	noServerGrace = time.Second
	statusHeader  = "Status"
)

// inbox is one wildcard subscription for the answers of all reads, several messages per question
// included. The client library's own request inbox takes one answer only, and a subscription per
// read costs two more messages.
type inbox struct {
	prefix string // "<inbox>."
	sub    *nats.Subscription

	mu      sync.Mutex
	next    uint64
	waiting map[uint64]func(*nats.Msg)
}

func newInbox(c *Conn) (*inbox, error) {
	in := &inbox{prefix: c.nc.NewInbox() + ".", waiting: map[uint64]func(*nats.Msg){}}
	var err error
	if in.sub, err = c.nc.Subscribe(in.prefix+"*", in.receive); err != nil {
		return nil, err
	}
	return in, in.sub.SetPendingLimits(-1, -1)
}

func (in *inbox) receive(m *nats.Msg) {
	n, err := strconv.ParseUint(m.Subject[min(len(in.prefix), len(m.Subject)):], 36, 64)
	if err != nil {
		return
	}
	in.mu.Lock()
	fn := in.waiting[n]
	in.mu.Unlock()
	if fn != nil {
		fn(m)
	}
}

// expect registers fn for the answers to the returned reply subject until forget is called. fn is
// called by one goroutine for all reads, so it must not block.
func (in *inbox) expect(fn func(*nats.Msg)) (reply string, forget func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := in.next
	in.next++
	in.waiting[n] = fn
	return in.prefix + strconv.FormatUint(n, 36), func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		delete(in.waiting, n)
	}
}

// collector takes the answers of one attempt; take reports whether the answer is complete. Each
// attempt has its own, so a late answer of an earlier attempt cannot mix with the present one.
type collector interface {
	take(m *nats.Msg) (complete bool)
}

// single is a collector of one message.
type single struct{ msg *nats.Msg }

func (s *single) take(m *nats.Msg) bool { s.msg = m; return true }

// ask publishes an idempotent question until an answer is complete or ctx ends. It asks again after
// a reconnect, and when an attempt stays without an answer: during an election questions are lost
// without a word.
func ask[C collector](
	ctx context.Context, c *Conn, subject string, body []byte, fresh func() C,
) (C, error) {
	var none C
	ctx, cancel := c.bound(ctx)
	defer cancel()
	defer c.denied.wait()()
	start := time.Now()
	for wait := firstAttempt; ; wait *= 2 {
		col := fresh()
		a := attempt{
			conn: c, subject: subject, start: start, up: c.reconnected(), refused: c.denied.next(),
			done: make(chan struct{}),
		}
		finished := false // only the inbox's goroutine uses it
		reply, forget := c.inbox.expect(func(m *nats.Msg) {
			if !finished && col.take(m) {
				finished = true
				close(a.done)
			}
		})
		a.reply = reply
		err := c.refused(subject, reply, start, false)
		if err == nil {
			err = c.whenUp(ctx,
				func() error { return c.write(&nats.Msg{Subject: subject, Reply: reply, Data: body}) })
		}
		if err != nil {
			forget()
			return none, fmt.Errorf("%s: %w", subject, fromNATS(err))
		}
		answered, err := a.await(ctx, wait)
		forget()
		switch {
		case err != nil:
			return none, err
		case answered:
			return col, nil
		}
	}
}

// attempt is one question on its way.
type attempt struct {
	conn           *Conn
	subject, reply string
	start          time.Time       // of the first attempt
	up, refused    <-chan struct{} // the connection was made anew; the server refused some subject
	done           chan struct{}   // the answer is complete
}

// await returns when the answer is complete, or not answered when it is time to ask again.
func (a *attempt) await(ctx context.Context, wait time.Duration) (answered bool, err error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-a.done:
			return true, nil
		case <-a.refused:
			a.refused = a.conn.denied.next()
			if err := a.conn.refused(a.subject, a.reply, a.start, true); err != nil {
				return false, err
			}
		case <-a.up:
			return false, nil
		case <-timer.C:
			a.conn.log.WithField("subject", a.subject).Debug("no answer, asking again")
			return false, nil
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return false, fmt.Errorf("%s: %w", a.subject, ctx.Err())
			}
			return false, a.conn.unanswered(a.subject, a.reply, a.start, ctx.Err())
		case <-a.conn.done:
			return false, fmt.Errorf("connection: %w", ErrClosed)
		}
	}
}

// answer is what every JetStream API response can say.
type answer struct {
	Error *wireError `json:"error"`
}

// failure takes the error out, so that a response can be decoded into again.
func (a *answer) failure() *wireError {
	e := a.Error
	a.Error = nil
	return e
}

type failable interface{ failure() *wireError }

// call makes one idempotent JetStream API request: op is what follows the API prefix.
func (c *Conn) call(ctx context.Context, op string, req any, resp failable) error {
	body, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("%s: encode request: %w", op, err)
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	start := time.Now()
	for {
		one, err := ask(ctx, c, c.api+"."+op, body, func() *single { return &single{} })
		if err != nil {
			return err
		}
		if noResponders(one.msg.Header, one.msg.Data) {
			if time.Since(start) >= noServerGrace || sleep.For(ctx, retryWait) != nil {
				return fmt.Errorf(
					"%s: %w: is JetStream enabled for this account, and the API prefix right?",
					op, ErrNoResponders)
			}
			continue
		}
		if err := json.Unmarshal(one.msg.Data, resp); err != nil {
			return fmt.Errorf("%s: unreadable answer: %w", op, err)
		}
		fail := resp.failure()
		if fail == nil {
			return nil
		}
		if fail.ErrCode != codeClusterNotUp || sleep.For(ctx, retryWait) != nil {
			return fmt.Errorf("%s: %w", op, fail.asError())
		}
	}
}

// noResponders says whether a message is the server's own "nobody listens".
func noResponders(h Header, body []byte) bool {
	return len(body) == 0 && h.Get(statusHeader) == statusNoResponders
}

// checkName refuses stream, consumer and bucket names that would change the API subject.
func checkName(what, name string) error {
	if name == "" || strings.ContainsAny(name, ".*> \t\r\n/\\") {
		return fmt.Errorf("%w: %s name %q, want one without dots, wildcards, slashes and spaces",
			ErrInvalid, what, name)
	}
	return nil
}
