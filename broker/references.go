package broker

import (
	"context"

	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/large"
	"github.com/droverhq/drover/schemas"
	"github.com/nats-io/nats.go/micro"
)

// named is a payload, and where it stands.
type named struct {
	field   string
	payload schemas.Payload
}

// references are those of some payloads that stand for objects of the store. Few requests have any:
// the others are not to allocate for it.
func references(all ...named) (found []named) {
	for _, n := range all {
		if _, is := n.payload.Ref(); is {
			found = append(found, n)
		}
	}
	return found
}

// referring goes on with a request once every object that it names is found.
func (b *Broker) referring(r micro.Request, references []named, goOn func()) {
	b.Answering.Run(func() {
		ctx, cancel := context.WithTimeout(b.Background, env.ReadTimeout)
		defer cancel()
		for _, n := range references {
			ref, _ := n.payload.Ref()
			if err := b.Store.Check(ctx, ref); err != nil {
				b.refuse(r, badReference(err).InField(n.field))
				return
			}
		}
		goOn()
	})
}

func badReference(err error) *schemas.Error {
	if large.IsNothing(err) {
		return schemas.Errorf(schemas.CodeInvalid, "the reference is to nothing: %v", err).
			WithHint("upload it again: a payload that no run names goes after a day")
	}
	return schemas.Errorf(schemas.CodeUnavailable, "the payload cannot be looked for now: %v", err).
		WithHint("try again")
}
