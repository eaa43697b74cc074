package schedules

import (
	"context"
	"errors"
	"fmt"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/ops/operations"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas/ops"
)

// ErrInvalidOptions reports options that leave their bounds. The text names the field and the way
// out.
var ErrInvalidOptions = errors.New("invalid options")

// Options of [New]. Conn and Namespace are required.
type Options struct {
	Conn      *natsconn.Conn
	Namespace subject.Namespace
	// RequireTypes says that the namespace refuses types that are not registered.
	RequireTypes bool
	// Node is the name of this process in notes. Defaults to none.
	Node string
	// Logger is told of schedules that cannot be read, and of what goes wrong. Defaults to none.
	Logger logrus.FieldLogger
}

// New checks the options. It asks nobody.
func New(o Options) (*Scheduler, error) {
	o.Logger = logx.Or(o.Logger)
	if o.Conn == nil {
		return nil, fmt.Errorf("schedules: %w: Conn is nil: dial the NATS server of the namespace",
			ErrInvalidOptions)
	}
	if err := subject.ValidateNamespace(string(o.Namespace)); err != nil {
		return nil, fmt.Errorf("schedules: %w: Namespace: %w", ErrInvalidOptions, err)
	}
	client, err := drover.Connect(context.Background(),
		&drover.Options{Conn: o.Conn.NATS(), Namespace: string(o.Namespace), Logger: o.Logger})
	if err != nil {
		return nil, fmt.Errorf("schedules: %w: %w", ErrInvalidOptions, err)
	}
	s := newScheduler(o, kv{conn: o.Conn, ns: o.Namespace},
		&brokers{conn: o.Conn, ns: o.Namespace, client: client})
	s.note = operations.New(o.Conn, o.Namespace, o.Node, o.Logger).Note
	s.serve = func(ctx context.Context, verbs []service.Verb) (func(), error) {
		return service.Serve(ctx,
			service.Options{Conn: o.Conn, Namespace: o.Namespace, Logger: o.Logger}, verbs)
	}
	return s, nil
}

func newScheduler(o Options, b bucket, e engine) *Scheduler {
	return &Scheduler{
		o: o, bucket: b, engine: e, log: logx.Or(o.Logger), settled: make(chan struct{}),
		note: func(context.Context, ops.Operation) {},
	}
}
