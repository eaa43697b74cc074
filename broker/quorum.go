package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	// quorumEvery is how often the cluster is looked at.
	quorumEvery = 250 * time.Millisecond
	// waitersFor is how long a request is remembered: longer than anybody waits for the answer of
	// one try.
	waitersFor = 15 * time.Second
	// maxWaiters bounds those that are remembered. Beyond it the oldest learn of a lost quorum from
	// their own timeout.
	maxWaiters = 8192
)

// noQuorum is the refusal of a node that sees too few others to store anything. It is final: a
// client that asks again and again would only wait out its own timeout.
func noQuorum(err error) *schemas.Error {
	if e, ok := errors.AsType[*schemas.Error](err); ok { // it has words of its own
		return e
	}
	e := schemas.Errorf(schemas.CodeUnavailable, "%v; nothing can be acknowledged here", err).
		WithHint("connect to the other nodes, or bring them back; a request may be repeated " +
			"with its request id, it will not happen twice")
	e.Final = true
	return e
}

// RefuseRequests answers every request for any namespace's API that reaches conn with what refusal
// returns, or not at all while that is nil, until ctx ends. A node of a cluster does so while it
// waits for the others, before it has a broker.
func RefuseRequests(ctx context.Context, conn *natsconn.Conn, refusal func() error) error {
	sub, err := conn.Subscribe("drover.*.api.*", "", func(m natsconn.Msg) {
		err := refusal()
		if err == nil || m.Reply == "" {
			return
		}
		encode := schemas.MarshalJSON
		if m.Header.Get(schemas.ContentTypeHeader) == schemas.ContentTypeMsgpack {
			encode = schemas.Marshal
		}
		if body, err := encode(&schemas.AckResponse{V: schemas.Version, Error: noQuorum(err)}); err == nil {
			// the connection ends with the process; whoever asked will ask again
			_ = m.Respond(nil, body)
		}
	})
	if err != nil {
		return fmt.Errorf("broker: refuse requests: %w", err)
	}
	defer sub.Close()
	<-ctx.Done()
	return nil
}

// pendingRequests remembers who has asked lately, for the moment in which nobody can be answered
// any more: their requests are on their way to a stream that will not acknowledge them, and without
// a word they would wait for their own timeouts.
type pendingRequests struct {
	mu     sync.Mutex
	recent []waiting
	next   int
}

type waiting struct {
	to, content string
	at          time.Time
}

func (a *pendingRequests) note(to, content string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := waiting{to, content, time.Now()}
	if len(a.recent) < maxWaiters {
		a.recent = append(a.recent, w)
		return
	}
	a.recent[a.next] = w
	a.next = (a.next + 1) % maxWaiters
}

// take returns who has asked within d, and forgets everybody.
func (a *pendingRequests) take(d time.Duration) []waiting {
	a.mu.Lock()
	defer a.mu.Unlock()
	var late []waiting
	for _, w := range a.recent {
		if time.Since(w.at) < d {
			late = append(late, w)
		}
	}
	a.recent, a.next = nil, 0
	return late
}

// serveQuorate serves a request if there is a quorum, and refuses it otherwise. Before it does it
// asks anew: a node that was cut off hears its peers, and requests that came by them, before it has
// looked at the cluster again, and whoever asked there would take its word for theirs.
func (b *Broker) serveQuorate(r micro.Request, serve func(*Broker, micro.Request)) {
	if what := natsconn.GivenTo(r); what != "" {
		b.Options.Logger.WithField("subject", r.Subject()).Debug("refused: it is " + what)
		b.refuse(r, natsconn.NoRequest(what))
		return
	}
	if b.Options.Quorum == nil {
		serve(b, r)
		return
	}
	if b.lost.Load() != nil {
		if err := b.Options.Quorum(); err != nil {
			b.refuse(r, noQuorum(err))
			return
		}
	}
	b.asking.note(r.Reply(), content(r))
	serve(b, r)
}

// watchQuorum follows the cluster until ctx ends. When the quorum is lost, it tells everybody who
// may still wait. One who has been answered already gets a second answer then, on a subject that
// nobody listens on any more.
func (b *Broker) watchQuorum(ctx context.Context) {
	if b.Options.Quorum == nil {
		return
	}
	for sleep.For(ctx, quorumEvery) == nil {
		err := b.Options.Quorum()
		was := b.lost.Load()
		if err == nil {
			if was != nil {
				b.Options.Logger.Info("requests can be acknowledged again")
			}
			b.lost.Store(nil)
			continue
		}
		b.lost.Store(&err)
		if was != nil {
			continue
		}
		late := b.asking.take(waitersFor)
		b.Options.Logger.WithError(err).WithField("waiting", len(late)).
			Error("nothing can be acknowledged: requests are refused")
		for _, w := range late {
			b.Respond(w.to, w.content,
				&schemas.AckResponse{V: schemas.Version, Error: noQuorum(err)})
		}
	}
}
