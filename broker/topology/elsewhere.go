package topology

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// elsewherePatience is how long somebody may take to answer who serves a namespace that is not
// here. Mostly nobody listens, and NATS says so at once.
const elsewherePatience = time.Second

// elsewhere refuses to make a namespace that others serve from another JetStream, as where this
// process is connected to a leaf node of their server: both would store what is meant for either,
// and fence each other. Whoever answers for dead letters has just read a stream of the namespace,
// so that one who has not heard yet that it was deleted is not meant, nor one who has just made it
// here.
//
// Considered: to ask who keeps the namespaces, which the rights of earlier templates do not allow
// to servers.
func (w *work) elsewhere(ctx context.Context, conn *natsconn.Conn, ns subject.Namespace) error {
	body, err := schemas.MarshalJSON(&schemas.DeadRequest{V: schemas.Version, Limit: 1})
	if err != nil {
		return err
	}
	asked, cancel := context.WithTimeout(ctx, elsewherePatience)
	defer cancel()
	m, err := conn.Request(asked, ns.API("dead"), nil, body)
	if err != nil {
		return nil // nobody listens, or this user may not ask
	}
	var a schemas.DeadResponse
	if err := schemas.Unmarshal(m.Data, &a); err != nil || a.Error != nil {
		return nil
	}
	if _, err := w.info(ctx, ns.StreamSignals()); !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	return &ConflictError{
		Stream: ns.StreamSignals(), Field: "its namespace",
		Have: "served already, from another JetStream", Want: "served by nobody",
		Hint: "name the JetStream domain of those streams, by jetstream_domain of a NATS " +
			"context or Options.APIPrefix, connect to the server that keeps them, or choose another namespace",
	}
}
