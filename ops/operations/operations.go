// Package operations notes what a namespace did by itself, and what operators had it do: slots that
// were missed, always-on workflows that were started again, recycles. The notes stand in a stream
// of their own, which keeps the latest 100,000 of them for 400 days.
//
// A note is for people. Nothing rests on it: what it is about is done whether it can be stored or
// not, and a note may stand twice after a crash.
package operations

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// patience is how long a note may hold up whoever makes it.
const patience = 2 * time.Second

// Log notes operations of one namespace. Its methods may be called by several goroutines at once.
type Log struct {
	conn *natsconn.Conn
	ns   subject.Namespace
	node string
	log  logrus.FieldLogger
}

// New returns the log of a namespace. The node stands for whoever does something by itself. A nil
// logger says nothing.
func New(conn *natsconn.Conn, ns subject.Namespace, node string, log logrus.FieldLogger) *Log {
	return &Log{conn: conn, ns: ns, node: node, log: logx.Or(log)}
}

// Note stores an operation. At defaults to now, Identity to the node. A note that cannot be stored
// within two seconds is told to the logger instead.
func (l *Log) Note(ctx context.Context, o ops.Operation) {
	o.V = schemas.Version
	if o.At == 0 {
		o.At = schemas.At(time.Now())
	}
	if o.Identity == "" {
		o.Identity = l.node
	}
	if err := l.store(ctx, &o); err != nil {
		l.log.WithField("err", err).WithField("kind", o.Kind).WithField("subject", o.Subject).
			WithField("reason", o.Reason).Warn("an operation cannot be noted in its stream")
	}
}

func (l *Log) store(ctx context.Context, o *ops.Operation) error {
	body, err := schemas.MarshalJSON(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := l.conn.PublishSync(ctx, l.ns.Operation(string(o.Kind)), nil, body); err != nil {
		return fmt.Errorf("operations: %w", err)
	}
	return nil
}
