package drover

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// namespaceHold is how long a server may work on a namespace before it answers: on a cluster each
// stream waits for an election.
const namespaceHold = time.Minute

// NamespaceOptions of [Client.CreateNamespace]. What is left out is what the namespace has, or the
// server's default for a new one.
type NamespaceOptions struct {
	// Partitions is the number of shares of all workflow ids, 1 to 256. It is fixed when the
	// namespace is made. Defaults to 4.
	Partitions int
	// Replicas is the number of servers that hold each stream: 1, 3 or 5. Defaults to what the
	// server was started with.
	Replicas int
	// MaxBytes limits each stream, in bytes, at least 16 MiB; -1 takes the limit away. Defaults to
	// none.
	MaxBytes int64
	// Compression is what the server makes of histories that are written to full blocks: "none", or
	// "s2", which takes a quarter of the disk and more CPU when many runs wake or close at once.
	// Only histories with one copy can be compressed. What is written already stays as it is, and a
	// change takes effect when the server starts again. Defaults to none.
	Compression string
	// RequireTypes refuses workflows and activities whose types are not registered. Defaults to
	// false.
	RequireTypes *bool
	// Description says what the namespace is for, in at most 1,024 bytes.
	Description string
	// FlowRetention says how closed runs of flows are kept that say nothing themselves, Retention
	// those of other types: expressions such as "3 soft 3", 7d or max(24h, 5). Default to what the
	// namespace has, and to 3 of each flow and 7 days.
	FlowRetention string
	Retention     string
}

// CreateNamespace makes a namespace, whichever one the client talks to, and tells what it has; nil
// options mean all defaults. If it exists already it is brought to what the options say, and what a
// call that was cut short has left is completed. A server serves it within a second.
//
// It needs a running server with the role ops, and no right to JetStream. Errors match
// [ErrInvalid], [ErrConflict] if the namespace has another number of partitions or is being
// deleted, or [ErrLimit] if NATS has too little room or too few servers: what is made by then
// stays, and the next call completes it.
func (c *Client) CreateNamespace(
	ctx context.Context, name string, o *NamespaceOptions,
) (*schemas.NamespaceInfo, error) {
	if o == nil {
		o = &NamespaceOptions{}
	}
	a, err := c.namespaces(ctx, "create", namespaceHold, &schemas.NamespaceRequest{
		Name: name, Partitions: o.Partitions, Replicas: o.Replicas, MaxBytes: o.MaxBytes,
		Compression: o.Compression, RequireTypes: o.RequireTypes, Description: o.Description,
		FlowRetention: o.FlowRetention, Retention: o.Retention,
	})
	if err != nil {
		return nil, err
	}
	return a.Namespace, nil
}

// DescribeNamespace tells what a namespace is, what its streams hold and which task lists it has.
// Errors match [ErrNotFound] if there is none of the name.
func (c *Client) DescribeNamespace(
	ctx context.Context, name string,
) (*schemas.NamespaceInfo, error) {
	a, err := c.namespaces(ctx, "describe", 0, &schemas.NamespaceRequest{Name: name})
	if err != nil {
		return nil, err
	}
	return a.Namespace, nil
}

// ListNamespaces yields all namespaces of the NATS account, sorted by name. The sequence ends with
// the last one, or with an error, which is its last value.
func (c *Client) ListNamespaces(ctx context.Context) iter.Seq2[schemas.NamespaceInfo, error] {
	q := query{verb: "namespace list", subject: schemas.NamespaceSubject("list")}
	fetch := func(after string, size int) ([]schemas.NamespaceInfo, string, error) {
		req := &schemas.NamespaceRequest{V: schemas.Version, After: after, Limit: size}
		page, err := call(ctx, c, q, req,
			func(a *schemas.NamespaceListResponse) *schemas.Error { return a.Error })
		if err != nil {
			return nil, "", namespaceError(q, err)
		}
		return page.Namespaces, page.After, nil
	}
	return pages(q, 0, fetch)
}

// DeleteNamespaceOptions of [Client.DeleteNamespace].
type DeleteNamespaceOptions struct {
	// Force deletes the namespace although runs are open.
	Force bool
	// Reason is logged by the server, at most 1,024 bytes.
	Reason string
}

// DeleteNamespace deletes a namespace with all that it holds, for good, and returns when nothing is
// left of it. The servers let go of it first; a server that has crashed lets go when its claims
// expire, after about ten seconds. A deletion that was cut short, by ctx too, is completed by the
// next one.
//
// Errors match [ErrNotFound] if there is none of the name, and [ErrConflict] if runs are open and
// it is not forced.
func (c *Client) DeleteNamespace(
	ctx context.Context, name string, o *DeleteNamespaceOptions,
) error {
	if o == nil {
		o = &DeleteNamespaceOptions{}
	}
	req := &schemas.NamespaceRequest{Name: name, Force: o.Force, Reason: o.Reason, Identity: c.name}
	// One that is there now and is not found later has been deleted by us, whoever of the servers
	// has answered. A try that a server reads late, such as one that stood still, is about that one
	// as well, and not about a later one of its name.
	there, missing := c.DescribeNamespace(ctx, name)
	if missing == nil {
		req.CreatedAt = there.CreatedAt
	}
	for begun := missing == nil; ; {
		a, err := c.namespaces(ctx, "delete", 0, req)
		switch {
		case begun && errors.Is(err, ErrNotFound):
			return nil
		case err != nil:
			return err
		case a.Namespace == nil:
			return nil
		}
		begun = true
	}
}

// namespaces asks the service that keeps the namespaces.
func (c *Client) namespaces(
	ctx context.Context, verb string, hold time.Duration, req *schemas.NamespaceRequest,
) (*schemas.NamespaceResponse, error) {
	req.V = schemas.Version
	q := query{
		verb: "namespace " + verb, id: req.Name, subject: schemas.NamespaceSubject(verb),
		hold: hold,
	}
	a, err := call(ctx, c, q, req,
		func(a *schemas.NamespaceResponse) *schemas.Error { return a.Error })
	if err != nil {
		return nil, namespaceError(q, err)
	}
	return a, nil
}

// namespaceError tells the way out where the namespace service is not there.
func namespaceError(q query, err error) error {
	e, ok := errors.AsType[*Error](err)
	switch {
	case ok && errors.Is(e.Err, natsconn.ErrNoResponders):
		e.Hint = "start a server that has the role ops and is not kept to one namespace, or check the NATS address"
	case ok && e.Code == schemas.CodeTimeout && !q.reads():
		e.Hint = "it may still be done: describe the namespace, or repeat this"
	}
	return err
}
