// Package service answers verbs of the API that the role ops has: those about schedules, always-on
// workflows, periods, recycles and retention. The others are the brokers'.
//
// A verb of which only the master may speak is served while this node is the master; whoever asks
// in between finds nobody, and asks again. Verbs that any node may answer share a queue group.
//
// Invariants:
//
//   - A request that cannot be decoded, or has a field that its verb does not know, is refused with
//     the field named, and nothing is done.
//   - What the NATS server gives out (a delivery, an answer of its API) is no request (E3): nobody
//     is answered on a subject of Drover or of the server.
//   - At most [Options.AtOnce] requests are worked on at a time; others wait in their order.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/stats"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/schemas"
)

// atOnce is the default of Options.AtOnce: an answer may be half a message long.
const atOnce = 16

// Options of [Serve]. Conn and Namespace are required.
type Options struct {
	Conn      *natsconn.Conn
	Namespace subject.Namespace
	// Queue is the queue group in which any one of several nodes answers. Defaults to none: each
	// that listens answers.
	Queue string
	// AtOnce bounds the requests that are worked on at a time. Defaults to 16.
	AtOnce int
	// Logger is told of answers that cannot be sent. Defaults to none.
	Logger logrus.FieldLogger
}

// Verb is a verb of the API.
type Verb struct {
	// Name is the last token of its subject; About says what it does, and its request and answer,
	// as in "how long a closed run is kept: ExecutionRequest → RetentionResponse".
	Name, About string
	// Serve makes the answer; see [Answer].
	Serve func(ctx context.Context, m natsconn.Msg) any
}

// Answer makes the Serve of a verb from its function. Refuse makes the answer that holds a refusal.
// An error that is no [*schemas.Error] is told as unavailable.
func Answer[Q, A any](
	do func(ctx context.Context, q *Q) (*A, error), refuse func(q *Q, e *schemas.Error) *A,
) func(context.Context, natsconn.Msg) any {
	return func(ctx context.Context, m natsconn.Msg) any {
		q := new(Q)
		err := Decode(m, q)
		var a *A
		if err == nil {
			a, err = do(ctx, q)
		}
		if err != nil {
			a = refuse(q, Refusal(err))
		}
		return a
	}
}

// Decode reads a request. The error is a [*schemas.Error] that names the field.
func Decode(m natsconn.Msg, q any) error {
	err := schemas.CheckUTF8(m.Data)
	if err == nil {
		err = natsconn.Decode(m.Header, m.Data, q)
	}
	if err != nil {
		return schemas.Errorf(schemas.CodeInvalid, "the request cannot be decoded: %v", err).
			InField(schemas.Place(err))
	}
	return nil
}

// Refusal is an error as it travels.
func Refusal(err error) *schemas.Error {
	if e, ok := errors.AsType[*schemas.Error](err); ok {
		return e
	}
	return schemas.Errorf(schemas.CodeUnavailable, "%v", err).WithHint("try again")
}

// Serve answers the verbs until stop is called, which waits for those that are being answered. ctx
// is that of the work; the [stats.Stats] that it has counts the answers.
func Serve(ctx context.Context, o Options, verbs []Verb) (stop func(), err error) {
	log := logx.Or(o.Logger)
	var answering sync.WaitGroup
	turns, counts := make(chan struct{}, cmp.Or(o.AtOnce, atOnce)), stats.From(ctx)
	var subs []natsconn.Subscription
	stop = func() {
		for _, sub := range subs {
			if err := sub.Close(); err != nil {
				log.WithField("err", err).
					Debug("a verb is answered no more, and NATS does not know")
			}
		}
		answering.Wait()
	}
	for _, v := range verbs {
		sub, err := o.Conn.Subscribe(o.Namespace.API(v.Name), o.Queue, func(m natsconn.Msg) {
			counts.Asked(m.Reply, v.Name)
			answering.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				a := v.Serve(ctx, m)
				counts.Answered(m.Reply, a)
				reply(log, m, a)
			})
		})
		if err != nil {
			stop()
			return nil, fmt.Errorf("ops: answer the verb %s: %w", v.Name, err)
		}
		subs = append(subs, sub)
	}
	return stop, nil
}

func reply(log logrus.FieldLogger, m natsconn.Msg, a any) {
	if !subject.Answerable(m.Reply) {
		return
	}
	encode := schemas.MarshalJSON
	if m.Header.Get(schemas.ContentTypeHeader) == schemas.ContentTypeMsgpack {
		encode = schemas.Marshal
	}
	body, err := encode(a)
	if err == nil {
		err = m.Respond(nil, body)
	}
	if err != nil {
		log.WithField("err", err).Warn("a request cannot be answered")
	}
}

// Ask sends a request of the API to the brokers, and decodes the answer into a, which may hold a
// refusal. It asks again each time that every has passed: the owner may be gone, and its repeat
// does no harm where the request has an id. A request that is too large for the NATS server is a
// [*schemas.Error]; after any other error it is unknown what was done.
func Ask(
	ctx context.Context, conn *natsconn.Conn, ns subject.Namespace, verb string,
	every time.Duration, q, a any,
) error {
	body, err := schemas.Marshal(q)
	if err != nil {
		return schemas.Errorf(schemas.CodeInvalid, "the request %s cannot be encoded: %v",
			verb, err)
	}
	if most := conn.MaxPayload(); most > 0 && int64(len(body)) > most {
		return schemas.Errorf(schemas.CodeTooLarge,
			"the request has %d bytes, the NATS server takes %d", len(body), most).
			WithHint("hand over a reference instead of the data")
	}
	head := natsconn.Header{schemas.ContentTypeHeader: {schemas.ContentTypeMsgpack}}
	m, err := conn.RequestEvery(ctx, every, ns.API(verb), head, body)
	if err != nil {
		return err
	}
	if err := schemas.Unmarshal(m.Data, a); err != nil {
		return fmt.Errorf("the answer to %s cannot be read: %w", verb, err)
	}
	return nil
}
