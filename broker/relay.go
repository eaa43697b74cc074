package broker

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

// relay passes requests on to the owners of partitions. The owner answers the requester itself.
//
// The server tells a sender that nobody listens, and nobody else. So a request travels with a reply
// subject of the relay's, which only ever hears that, and with the requester's own in a header;
// while a partition changes its owner the relay tries again. As with decision tasks (ADR 0002) a
// marker after the requests says which of them were taken.
//
// Considered and left: to let the requester's reply subject travel as such. A request that came
// between two owners was lost without a word, and its sender waited for its own timeout.
type relay struct {
	b      *env
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
	// relayBudget is for what a request has beside its body on the way to its owner: a subject and
	// headers.
	relayBudget = 4 << 10
	// replyHeader is where the answer of a request to an owner goes.
	replyHeader = "Drover-Reply"
	// markerPrefix begins the last token of a marker's subject.
	markerPrefix = "m"
)

func (b *env) newRelay() (*relay, error) {
	r := &relay{b: b, prefix: b.conn.NATS().NewInbox() + ".", waiting: make(map[uint64]*relayed)}
	var err error
	if _, err = b.conn.Subscribe(r.prefix+">", "", r.heard); err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	b.conn.OnReconnect(r.forget)
	return r, nil
}

// idle tells whether every request was taken or refused.
func (r *relay) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)+r.waitingRetry == 0
}

// forget gives up what was on its way on a connection that was lost: it is as lost as its answers.
func (r *relay) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.waiting)
	r.marker = false
}

// send passes a request on, sooner or later, or refuses it.
func (r *relay) send(partition int, reply string, h natsconn.Header, body []byte) {
	h = maps.Clone(h)
	h.Set(replyHeader, reply)
	r.try(&relayed{partition: partition, reply: reply, header: h, body: body, began: time.Now()})
}

func (r *relay) try(q *relayed) {
	r.mu.Lock()
	defer r.mu.Unlock() // held while sending: a marker must be after all requests below it
	r.next++
	id := r.next
	r.waiting[id] = q
	if err := r.b.conn.PublishReply(r.b.ns.Owner(q.partition), r.prefix+strconv.FormatUint(id, 36),
		q.header, q.body); err != nil {
		delete(r.waiting, id)
		r.b.refuseTo(q.reply, q.header.Get(schemas.ContentTypeHeader), unavailable(err))
		return
	}
	r.mark()
}

// mark sends a marker if requests wait for one. The caller holds mu.
func (r *relay) mark() {
	if r.marker || len(r.waiting) == 0 {
		return
	}
	if err := r.b.conn.Publish(r.prefix+markerPrefix+"."+strconv.FormatUint(r.next, 36), nil, nil); err != nil {
		clear(r.waiting) // as in forget
		return
	}
	r.marker = true
}

// heard: a request was taken by nobody, or the marker after it is back.
func (r *relay) heard(m natsconn.Msg) {
	key := strings.TrimPrefix(m.Subject, r.prefix)
	if id, marker := strings.CutPrefix(key, markerPrefix+"."); marker {
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
		r.b.refuseTo(
			q.reply,
			q.header.Get(schemas.ContentTypeHeader),
			schemas.Errorf(
				schemas.CodeUnavailable,
				"partition %d has no owner at the moment",
				q.partition,
			).WithHint("try again; if that stays so, look at: drover claims"),
		)
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
func (r *relay) taken(n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.waiting {
		if id <= n {
			delete(r.waiting, id)
		}
	}
	r.marker = false
	r.mark()
}
