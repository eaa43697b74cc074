package drover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	firstBackoff = 50 * time.Millisecond
	lastBackoff  = time.Second
	// firstAttempt bounds the first try; it doubles up to lastAttempt. Short, because the server
	// that took a request may be gone and nobody tells; growing, because a slow one may need that
	// long. Within a try it is asked again after each firstAttempt, and the first answer counts:
	// one that has stopped may be asked again and again by chance.
	firstAttempt = 2 * time.Second
	lastAttempt  = 8 * time.Second
	// quiet is how long a call may find nobody before the log says so.
	quiet = time.Second
	// insist is how long a call goes on asking although it was refused for good: the server may be
	// about to find its peers.
	insist = 2 * time.Second
	// hold is how long a server may hold back the answer of a long poll. Short, because a server
	// that dies meanwhile is noticed only when it is over.
	hold = 5 * time.Second
	// slowLink is how many bytes a second a slow link carries.
	slowLink = 64 << 10
)

// query says what is asked, and about which execution.
type query struct {
	verb    string
	id, run string
	hold    time.Duration // how long the server may hold back its answer
	// when the server last said that what is waited for has not come; the zero time if it never did
	open    time.Time
	answer  int    // how many bytes the answer will have, if they are known to be many
	subject string // instead of that of the verb in the client's namespace
}

// reads are the verbs that change nothing: whoever gets no answer has missed nothing but that.
var reads = []string{
	"describe", "list", "count", "history", "spans", "result", "why", "retention", "lists", "locks", "dead",
	"typeDescribe", "typeList", "recycleShow",
	"namespace list", "namespace describe",
	"scheduleShow", "scheduleList", "alwaysShow", "alwaysList", "operations", "query", "groups",
}

// reads tells whether the call changes nothing.
func (q *query) reads() bool { return slices.Contains(reads, q.verb) }

// unknown says of the error of a write that it may have been done, where no answer came.
func (q *query) unknown(err error) error {
	if q.reads() {
		return err
	}
	return natsconn.OutcomeUnknown(err)
}

// holds is how long the server is to hold back its answer: it comes before the caller's time is
// over, so that silence until then says that nobody answers, and not that there is nothing to say.
func holds(ctx context.Context) schemas.Duration {
	d := hold
	if end, ok := ctx.Deadline(); ok {
		left := max(time.Until(end), 0)
		d = min(d, left-left/8)
	}
	return schemas.Duration(d)
}

// call asks until somebody answers; refusal finds the error in an answer. The same bytes are sent
// each time, so that the ids in them make the repeat of a write harmless. Errors are of type
// [*Error].
func call[Answer any](
	ctx context.Context, c *Client, q query, in any, refusal func(*Answer) *schemas.Error,
) (*Answer, error) {
	body, err := schemas.Marshal(in)
	if err != nil {
		return nil, newError(q, fmt.Errorf("%w: %w", errEncode, err))
	}
	if most := c.conn.MaxPayload(); most > 0 && int64(len(body)) > most {
		return nil, newError(q, fmt.Errorf("%w: the request has %d bytes, the server takes %d",
			natsconn.ErrTooLarge, len(body), most))
	}
	wait := patience{client: c, query: q, began: time.Now()}
	var before error
	for {
		done, err := wait.turn(ctx, max(len(body), q.answer))
		if err != nil {
			return nil, newError(q, q.unknown(outlived(ctx, cmp.Or(before, err))))
		}
		out, err := ask(ctx, c, q, body, wait.attempt(), refusal)
		done(err)
		if err == nil {
			return out, nil
		}
		if errors.Is(err, errOwned) && ctx.Err() == nil {
			continue
		}
		if missing := wait.missing(ctx, err); missing != nil {
			return nil, newError(q, missing)
		}
		if before != nil && ctx.Err() != nil && errors.Is(err, natsconn.ErrTimeout) {
			// The caller's ctx cut the last try short; the one before it tells more.
			err = before
		}
		if !wait.again(ctx, err) {
			return nil, newError(q, q.unknown(outlived(ctx, err)))
		}
		before = err
	}
}

// ask is one try.
func ask[Answer any](
	ctx context.Context, c *Client, q query, body []byte, limit time.Duration,
	refusal func(*Answer) *schemas.Error,
) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t := c.tries.begin(c, cancel)
	defer c.tries.end(t)
	head := natsconn.Header{schemas.ContentTypeHeader: {schemas.ContentTypeMsgpack}}
	every := q.hold + firstAttempt + bulkSlack(max(len(body), q.answer))
	if limit <= every {
		every = 0
	}
	msg, err := c.conn.RequestEvery(ctx, every, cmp.Or(q.subject, c.namespace.API(q.verb)), head,
		body)
	if err != nil {
		if t.again.Load() {
			err = fmt.Errorf("%w: %w", errOwned, err)
		}
		return nil, err
	}
	out := new(Answer)
	broken := schemas.Unmarshal(msg.Data, out)
	if broken == nil {
		if r := refusal(out); r != nil {
			return nil, r
		}
	}
	if err := serviceError(msg); err != nil {
		return nil, err
	}
	if broken != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", broken)
	}
	return out, nil
}

// serviceError reads the headers by which a NATS micro service reports what its handler did not put
// into an answer.
func serviceError(msg natsconn.Msg) error {
	code := msg.Header.Get("Nats-Service-Error-Code")
	if code == "" {
		return nil
	}
	return fmt.Errorf("the service answered %s: %s", code, msg.Header.Get("Nats-Service-Error"))
}

// patience decides how long one call keeps asking.
type patience struct {
	client *Client
	query  query
	began  time.Time
	tries  int
	told   bool
	looked bool // for the namespace
	slack  time.Duration
}

// turn waits until the link to the server has room for a large request or answer. While others are
// answered, that is no time in which nobody answers.
func (p *patience) turn(ctx context.Context, size int) (done func(error), err error) {
	p.slack = bulkSlack(size)
	done, moved, err := p.client.conn.Bulk(ctx, size, max(p.left(), 1))
	p.began = p.began.Add(moved)
	return done, err
}

// bulkSlack is how much longer one may wait for the answer to a large request, or for a large
// answer, which a slow link carries slowly.
func bulkSlack(size int) time.Duration {
	if size < natsconn.BulkBytes {
		return 0
	}
	return time.Duration(size) * time.Second / slowLink
}

// left is what remains of the time that nobody may answer.
func (p *patience) left() time.Duration {
	return p.client.timeout + p.query.hold - time.Since(p.began)
}

// attempt bounds the next try.
func (p *patience) attempt() time.Duration {
	grow := min(firstAttempt<<min(p.tries, 8), lastAttempt)
	return min(p.query.hold+grow+p.slack, p.left())
}

// again waits before the next try; false means that there is none.
func (p *patience) again(ctx context.Context, err error) bool {
	if ctx.Err() != nil || !transient(err) {
		return false
	}
	if refusal, ok := errors.AsType[*schemas.Error](err); ok && refusal.Final &&
		time.Since(p.began) >= insist {
		return false
	}
	wait := min(firstBackoff<<min(p.tries, 16), lastBackoff)
	wait = wait*3/4 + rand.N(wait/2)
	p.tries++
	if p.left() <= wait {
		return false
	}
	if !p.told && time.Since(p.began) >= quiet {
		p.told = true
		p.client.log.WithField("err", err).Warnf("%s: no answer yet, asking again for %v",
			p.query.verb, p.left().Round(time.Second))
	}
	return sleep.For(ctx, wait) == nil
}

// missing asks, once nobody has answered, whether there is the namespace, if it must exist. It
// returns nil if there is, or if nobody knows.
func (p *patience) missing(ctx context.Context, err error) error {
	c := p.client
	if !c.mustExist || p.looked || p.query.subject != "" ||
		!errors.Is(err, natsconn.ErrNoResponders) {
		return nil
	}
	p.looked = true
	body, err := schemas.Marshal(
		&schemas.NamespaceRequest{V: schemas.Version, Name: string(c.namespace)})
	if err != nil {
		return nil
	}
	q := query{verb: "namespace describe", subject: schemas.NamespaceSubject("describe")}
	_, err = ask(ctx, c, q, body, quiet,
		func(a *schemas.NamespaceResponse) *schemas.Error { return a.Error })
	if refusal, ok := errors.AsType[*schemas.Error](err); ok &&
		refusal.Code == schemas.CodeNotFound {
		return refusal
	}
	return nil
}

// transient tells whether asking again may help: nobody was there, nobody answered, or the owner is
// changing.
func transient(err error) bool {
	if refusal, ok := errors.AsType[*schemas.Error](err); ok {
		return refusal.Code == schemas.CodeUnavailable || refusal.Code == schemas.CodeTimeout
	}
	if errors.Is(err, natsconn.ErrPermission) || errors.Is(err, natsconn.ErrClosed) {
		return false
	}
	return errors.Is(err, natsconn.ErrNoResponders) || errors.Is(err, natsconn.ErrDisconnected) ||
		errors.Is(err, natsconn.ErrTimeout)
}

// outlived joins to the last try's error that the caller's ctx has ended, and by what cause, so
// that all are found by errors.Is.
func outlived(ctx context.Context, err error) error {
	for _, end := range []error{ctx.Err(), context.Cause(ctx)} {
		if end != nil && !errors.Is(err, end) {
			err = fmt.Errorf("%w: %w", err, end)
		}
	}
	return err
}
