package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/schemas"
)

// rulePayload: what an event names as a large payload is in the store. An object comes before what
// names it, and goes after that.
const rulePayload = "payload"

// payloadCheck looks whether the store has what the histories name. Objects that it had before they
// were read are known by their names; of the others, which came later or are gone, the first place
// in each run is kept.
type payloadCheck struct {
	conn   *natsconn.Conn
	store  *payloads.Store
	stored map[string]bool
	seen   map[objectIn]bool
	open   []namedObject // to be looked for
}

type objectIn struct{ run, object string }

type namedObject struct {
	at     checker.Violation // where it is named
	stream string
	seq    uint64 // of the record
	ref    *schemas.PayloadRef
}

// list reads the names of the objects. What it cannot read is looked for one by one, and said then.
func (c *payloadCheck) list(ctx context.Context) error {
	c.stored, c.seen = map[string]bool{}, map[objectIn]bool{}
	_ = c.store.Objects(ctx, func(o payloads.Object) error {
		c.stored[o.Name] = true
		return nil
	})
	return context.Cause(ctx)
}

// note takes the references of a record, which is m of a stream.
func (c *payloadCheck) note(stream string, m *natsconn.Stored, r *schemas.Record) {
	for _, e := range r.Events {
		for _, p := range schemas.PayloadFields(e.Attributes) {
			ref, is := p.Ref()
			if !is || c.stored[ref.Object] || c.seen[objectIn{r.Run, ref.Object}] {
				continue
			}
			c.seen[objectIn{r.Run, ref.Object}] = true
			c.open = append(c.open, namedObject{
				at: checker.Violation{
					Rule: rulePayload, WorkflowID: r.WorkflowID, Run: r.Run, EventID: e.ID,
				},
				stream: stream, seq: m.Seq, ref: ref,
			})
		}
	}
}

// Missing looks for what is open. What has gone with its run meanwhile is not missing.
func (c *payloadCheck) Missing(ctx context.Context) (found []checker.Violation, err error) {
	for _, n := range c.open {
		err := c.store.Check(ctx, n.ref)
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil, natsconn.Transient(err), errors.Is(err, natsconn.ErrPermission):
			return nil, fmt.Errorf("large payloads: %w", err)
		}
		switch _, gone := c.conn.GetSeq(ctx, n.stream, n.seq); {
		case errors.Is(gone, natsconn.ErrNotFound):
			continue
		case gone != nil:
			return nil, fmt.Errorf("large payloads: %w", gone)
		}
		n.at.Detail = fmt.Sprintf("a payload of %d bytes is lost: %v", n.ref.Size, err)
		found = append(found, n.at)
	}
	return found, nil
}
