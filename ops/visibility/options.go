package visibility

import (
	"context"
	"errors"
	"fmt"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/schemas/ops"
)

// ErrInvalidOptions reports options that leave their bounds. The text names the field and the way
// out.
var ErrInvalidOptions = errors.New("invalid options")

// Options of [New].
type Options struct {
	// Dial opens the connection that reads the streams, and answers; [Index.Run] closes it.
	// Required.
	Dial func(ctx context.Context) (*natsconn.Conn, error)
	// Namespace that is indexed, and how many partitions it has. Required.
	Namespace  subject.Namespace
	Partitions int
	// Owned are the partitions of which a broker in this process tells [Index.Changed]. It is asked
	// each second. The others are read by consumers. Defaults to none.
	Owned func() []int
	// Memory tells how many bytes the rows may take now. Above it the oldest closed runs leave.
	// Defaults to 1 GiB.
	Memory func() int64
	// Dir is the folder for snapshots, a file for each partition; it is made if it is missing.
	// Defaults to none: each start reads the histories.
	Dir string
	// Node is the name of this process in answers. Defaults to none.
	Node string
	// Note notes an operation: that a row was wrong. Defaults to nothing.
	Note func(context.Context, ops.Operation)
	// Logger is told of what goes wrong. Defaults to none.
	Logger logrus.FieldLogger
}

const defaultMemory = 1 << 30

func (o Options) withDefaults() (Options, error) {
	bad := func(format string, args ...any) (Options, error) {
		return o, fmt.Errorf("visibility: %w: %s", ErrInvalidOptions, fmt.Sprintf(format, args...))
	}
	if o.Memory == nil {
		o.Memory = func() int64 { return defaultMemory }
	}
	if o.Owned == nil {
		o.Owned = func() []int { return nil }
	}
	if o.Note == nil {
		o.Note = func(context.Context, ops.Operation) {}
	}
	o.Logger = logx.Or(o.Logger)
	switch {
	case o.Dial == nil:
		return bad("Dial is nil: want a way to the NATS server of the namespace")
	case o.Partitions < 1:
		return bad("Partitions is %d: want what topology.Lookup reports, at least 1", o.Partitions)
	}
	if err := subject.ValidateNamespace(string(o.Namespace)); err != nil {
		return bad("Namespace: %v", err)
	}
	return o, nil
}
