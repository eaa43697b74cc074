package broker

import (
	"errors"

	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/schemas"
	"github.com/nats-io/nats.go/micro"
	"github.com/oklog/ulid/v2"
)

// serveReplay hands a replay to the owner of its workflow id. Force is the right to another
// subject, and no field.
func serveReplay(verb string) func(*Broker, micro.Request) {
	return func(b *Broker, r micro.Request) {
		var q schemas.ReplayRequest
		if err := env.DecodeRequest(r, &q); err != nil {
			b.refuse(r, env.Invalid(err))
			return
		}
		if e, ok := errors.AsType[*schemas.Error](q.Validate()); ok {
			b.refuse(r, e)
			return
		}
		if q.RequestID == "" {
			q.RequestID = ulid.Make().String()
		}
		q.V = schemas.Version
		body, err := schemas.Marshal(&q)
		if err != nil {
			b.refuse(r, schemas.Errorf(schemas.CodeInternal, "%v", err))
			return
		}
		b.toOwner(q.WorkflowID, r.Reply(), requestHeader(verb, content(r)), body)
	}
}
