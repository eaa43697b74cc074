package env

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// RequestRelay passes requests on to the owners of partitions. The owner answers the requester itself.
//
// The server tells a sender that nobody listens, and nobody else. So a request travels with a reply
// subject of the relay's, which only ever hears that, and with the requester's own in a header;
// while a partition changes its owner the relay tries again. As with decision tasks (ADR 0002) a
// marker after the requests says which of them were taken.
//
// Considered and left: to let the requester's reply subject travel as such. A request that came
// between two owners was lost without a word, and its sender waited for its own timeout.
type RequestRelay struct {
	e      *Env
	prefix string

	mu           sync.Mutex
	next         uint64
	waiting      map[uint64]*relayed
	waitingRetry int  // requests between two tries
	marker       bool // is on its way
}

// relayed is a request that may not have been taken.
type relayed struct {
	partition int
	reply     string
	header    natsconn.Header
	body      []byte
	began     time.Time
}

const (
	// relayFor is how long a request may find no owner before its sender is told. Clients wait 2 s
	// for their first answer.
	relayFor = 1500 * time.Millisecond
	// relayRetry is the pause between two tries.
	relayRetry = 10 * time.Millisecond
	// RelayBudget is for what a request has beside its body on the way to its owner: a subject and
	// headers.
	RelayBudget = 4 << 10
	// ReplyHeader is where the answer of a request to an owner goes.
	ReplyHeader = "Drover-Reply"
	// MarkerPrefix begins the last token of a marker's subject.
	MarkerPrefix = "m"
)

func (e *Env) NewRelay() (*RequestRelay, error) {
	r := &RequestRelay{e: e, prefix: e.Conn.NATS().NewInbox() + ".", waiting: make(map[uint64]*relayed)}
	var err error
	if _, err = e.Conn.Subscribe(r.prefix+">", "", r.heard); err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	e.Conn.OnReconnect(r.forget)
	return r, nil
}

// Idle tells whether every request was taken or refused.
func (r *RequestRelay) Idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)+r.waitingRetry == 0
}

// forget gives up what was on its way on a connection that was lost: it is as lost as its answers.
func (r *RequestRelay) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.waiting)
	r.marker = false
}

// Send passes a request on, sooner or later, or refuses it.
func (r *RequestRelay) Send(partition int, reply string, h natsconn.Header, body []byte) {
	h = maps.Clone(h)
	h.Set(ReplyHeader, reply)
	r.try(&relayed{partition: partition, reply: reply, header: h, body: body, began: time.Now()})
}

func (r *RequestRelay) try(q *relayed) {
	r.mu.Lock()
	defer r.mu.Unlock() // held while sending: a marker must be after all requests below it
	r.next++
	id := r.next
	r.waiting[id] = q
	if err := r.e.Conn.PublishReply(r.e.NS.Owner(q.partition), r.prefix+strconv.FormatUint(id, 36),
		q.header, q.body); err != nil {
		delete(r.waiting, id)
		r.e.RefuseTo(q.reply, q.header.Get(schemas.ContentTypeHeader), Unavailable(err))
		return
	}
	r.mark()
}

// mark sends a marker if requests wait for one. The caller holds mu.
func (r *RequestRelay) mark() {
	if r.marker || len(r.waiting) == 0 {
		return
	}
	if err := r.e.Conn.Publish(r.prefix+MarkerPrefix+"."+strconv.FormatUint(r.next, 36), nil, nil); err != nil {
		clear(r.waiting) // as in forget
		return
	}
	r.marker = true
}

// heard: a request was taken by nobody, or the marker after it is back.
func (r *RequestRelay) heard(m natsconn.Msg) {
	key := strings.TrimPrefix(m.Subject, r.prefix)
	if id, marker := strings.CutPrefix(key, MarkerPrefix+"."); marker {
		if n, err := strconv.ParseUint(id, 36, 64); err == nil {
			r.taken(n)
		}
		return
	}
	id, err := strconv.ParseUint(key, 36, 64)
	if err != nil || !m.NobodyListens() {
		return
	}
	r.mu.Lock()
	q := r.waiting[id]
	delete(r.waiting, id)
	again := q != nil && time.Since(q.began) <= relayFor
	if again {
		r.waitingRetry++
	}
	r.mu.Unlock()
	switch {
	case q == nil:
	case !again:
		r.e.RefuseTo(q.reply, q.header.Get(schemas.ContentTypeHeader),
			schemas.Errorf(schemas.CodeUnavailable, "partition %d has no owner at the moment",
				q.partition).WithHint("try again; if that stays so, look at: drover claims"))
	default:
		time.AfterFunc(relayRetry, func() {
			r.try(q)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.waitingRetry--
		})
	}
}

// taken forgets the requests up to n: somebody has them.
func (r *RequestRelay) taken(n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, q := range r.waiting {
		if id <= n {
			r.e.Options.Stats.Passed(q.reply)
			delete(r.waiting, id)
		}
	}
	r.marker = false
	r.mark()
}
