package natsconn

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	maxDenials   = 256
	denialLedger = 5 * time.Minute
)

// The server's text is: Permissions Violation for Publish to "subject", and the same with
// Subscription.
var denialText = regexp.MustCompile(`for (Publish|Subscription) to ("(?:[^"\\]|\\.)*")`)

// RefusedError says that the NATS server does not let this user publish or subscribe to a subject;
// it wraps [ErrPermission].
type RefusedError struct {
	// Subscribe tells a refused subscription from a refused publish.
	Subscribe bool
	// Subject is the one that was refused. That of a subscription may hold wildcards.
	Subject string
}

// Error names the subject.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("%v: %s to %q", ErrPermission, e.verb(), e.Subject)
}

// Hint says what to do about it. Reply subjects are of one connection: a user who may hear some has
// a prefix of its own.
func (e *RefusedError) Hint() string {
	hint := fmt.Sprintf("allow the NATS user to %s to %q, or connect as another user",
		e.verb(), e.Subject)
	if e.Subscribe && strings.HasPrefix(e.Subject, nats.InboxPrefix) {
		return "connect with the prefix of reply subjects that this user has, by inbox_prefix " +
			"of a NATS context or Options.InboxPrefix; else " + hint
	}
	return hint
}

// Unwrap returns [ErrPermission].
func (e *RefusedError) Unwrap() error { return ErrPermission }

func (e *RefusedError) verb() string {
	if e.Subscribe {
		return "subscribe"
	}
	return "publish"
}

// covers tells whether a message with this subject, whose answer goes to reply, is lost by the
// refusal.
func (e *RefusedError) covers(subject, reply string) bool {
	if e.Subscribe {
		return reply != "" && strings.HasPrefix(reply, strings.TrimRight(e.Subject, "*>"))
	}
	return e.Subject == subject
}

// denials remembers which subjects the server refused, and tells those who wait: the server itself
// leaves them waiting.
type denials struct {
	mu      sync.Mutex
	pubs    map[string]time.Time
	subs    map[string]time.Time
	changed chan struct{} // closed at the next refusal, then replaced; nil while nobody waits
	hooks   hooks[func(*RefusedError)]

	waiting atomic.Int64 // calls that will hear of their refusal
}

// refusalIn reads the server's text; nil if it is about something else.
func refusalIn(text string) *RefusedError {
	m := denialText.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	subject, err := strconv.Unquote(m[2])
	if err != nil {
		return nil
	}
	return &RefusedError{Subscribe: m[1] == "Subscription", Subject: subject}
}

// record takes the server's text.
func (d *denials) record(text string) {
	e := refusalIn(text)
	if e == nil {
		return
	}
	for _, fn := range d.note(e) {
		fn(e)
	}
}

// note writes a refusal down, wakes those who wait, and returns the hooks to call.
func (d *denials) note(e *RefusedError) []func(*RefusedError) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pubs == nil {
		d.pubs, d.subs = map[string]time.Time{}, map[string]time.Time{}
	}
	book := d.pubs
	if e.Subscribe {
		book = d.subs
	}
	if len(book) >= maxDenials {
		prune(book)
	}
	book[e.Subject] = time.Now()
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
	return d.hooks.all()
}

// prune drops old entries, or all of them when none is old: the ledger serves the next seconds
// only.
func prune(book map[string]time.Time) {
	for s, at := range book {
		if time.Since(at) > denialLedger {
			delete(book, s)
		}
	}
	if len(book) >= maxDenials {
		clear(book)
	}
}

// forget empties the ledger: the next connection may have other permissions.
func (d *denials) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.pubs)
	clear(d.subs)
}

// wait says that a call waits for an answer, until done is called.
func (d *denials) wait() (done func()) {
	d.waiting.Add(1)
	return func() { d.waiting.Add(-1) }
}

// next gives a channel that is closed at the next refusal, of whatever subject. Take it before you
// look and before you send.
func (d *denials) next() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	return d.changed
}

// since returns the refusal of a publish to subject that came at or after start, or of a
// subscription to reply, whose age does not count: it stays refused.
func (d *denials) since(subject, reply string, start time.Time) *RefusedError {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, ok := d.pubs[subject]; ok && !at.Before(start) {
		return &RefusedError{Subject: subject}
	}
	for s := range d.subs {
		if e := (&RefusedError{Subscribe: true, Subject: s}); e.covers("", reply) {
			return e
		}
	}
	return nil
}

// hook registers fn, and returns the subscriptions that were refused before: those refusals do not
// come again.
func (d *denials) hook(fn func(*RefusedError)) (remove func(), before []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hooks == nil {
		d.hooks = hooks[func(*RefusedError)]{}
	}
	return d.hooks.add(&d.mu, fn), slices.Sorted(maps.Keys(d.subs))
}

// OnRefused registers a function that is called for each subject that the server refuses from now
// on, and, before OnRefused returns, for the subscriptions that it has refused on this connection
// already: they stay refused, and who subscribes first and registers then misses none. It must not
// block. The returned function removes it.
func (c *Conn) OnRefused(fn func(*RefusedError)) (remove func()) {
	remove, before := c.denied.hook(fn)
	for _, subject := range before {
		fn(&RefusedError{Subscribe: true, Subject: subject})
	}
	return remove
}

// UntilRefused returns a context that is canceled, with the [*RefusedError] as its cause, when the
// server refuses a publish to a subject with the prefix. It makes calls fail at once that do not
// look for refusals themselves: those of [Conn.JetStream]. A prefix of the JetStream API begins
// with $JS.API, whatever Options.APIPrefix is.
func (c *Conn) UntilRefused(
	ctx context.Context, prefix string,
) (context.Context, context.CancelFunc) {
	if op, ok := strings.CutPrefix(prefix, defaultAPI+"."); ok {
		prefix = c.api + "." + op
	}
	ctx, cancel := context.WithCancelCause(ctx)
	remove := c.OnRefused(func(e *RefusedError) {
		if !e.Subscribe && strings.HasPrefix(e.Subject, prefix) {
			cancel(e)
		}
	})
	return ctx, func() {
		remove()
		cancel(nil)
	}
}

// settleInbox learns whether the server refused the reply inbox, so that nothing is sent whose
// answer cannot come. The handler that records refusals runs in a goroutine of the library, which
// may lag; the error itself is there.
func (c *Conn) settleInbox(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if c.nc.FlushWithContext(ctx) != nil {
		return // the connection broke already: the first call will say so
	}
	if err := c.nc.LastError(); err != nil {
		c.denied.record(err.Error())
	}
}

// PublishHeard is [Conn.Publish], and returns when the server has read the message: by then it has
// said whether it refuses the subject, which is a [*RefusedError]. Whether somebody, or a stream,
// got the message is not known.
func (c *Conn) PublishHeard(ctx context.Context, subject string, h Header, body []byte) error {
	defer c.denied.wait()()
	start := time.Now()
	if err := c.Publish(subject, h, body); err != nil {
		return err
	}
	if err := c.Flush(ctx); err != nil {
		return fmt.Errorf("publish %s: %w", subject, err)
	}
	// The handler that records refusals may lag. An old error about the same subject is believed:
	// until the next connection, whose rights may be others, what was refused stays refused.
	if err := c.nc.LastError(); err != nil {
		if m := denialText.FindStringSubmatch(err.Error()); m != nil && m[1] == "Publish" &&
			m[2] == strconv.Quote(subject) {
			return fmt.Errorf("publish %s: %w", subject, &RefusedError{Subject: subject})
		}
	}
	return c.refused(subject, "", start, true)
}

// hears returns the refusal of the reply inbox: whatever waits for answers would wait in vain.
func (c *Conn) hears() error {
	if e := c.denied.since("", c.inbox.prefix, time.Time{}); e != nil {
		return e
	}
	return nil
}

// unanswered is the error of a publish or request that got no answer, with the server's refusal
// joined to it.
func (c *Conn) unanswered(subject, reply string, start time.Time, cause error) error {
	if cause == nil {
		cause = context.DeadlineExceeded
	}
	if e := c.denied.since(subject, reply, start); e != nil {
		return fmt.Errorf("%s: %w (%w, %w)", subject, e, ErrTimeout, cause)
	}
	return fmt.Errorf("%s: %w: %w", subject, ErrTimeout, cause)
}

// refused is the error of a publish or request that the server refused before any time was over. A
// refused publish was received by nobody. With a refused subscription for the answer, the message
// itself may have been.
func (c *Conn) refused(subject, reply string, start time.Time, sent bool) error {
	switch e := c.denied.since(subject, reply, start); {
	case e == nil:
		return nil
	case e.Subscribe && sent:
		return fmt.Errorf("%s: %w (%w)", subject, e, ErrTimeout)
	default:
		return fmt.Errorf("%s: %w", subject, e)
	}
}
