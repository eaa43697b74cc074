package retention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/internal/retention"
	"github.com/droverhq/drover/schemas/ops"
)

// ErrInvalidOptions reports options that leave their bounds. The text names the field and the way
// out.
var ErrInvalidOptions = errors.New("invalid options")

// Options of [New].
type Options struct {
	// Conn reads the streams and purges. Required.
	Conn *natsconn.Conn
	// Namespace that is looked after, and how many partitions it has. Required.
	Namespace  subject.Namespace
	Partitions int
	// Flows tells which workflow types are flows. It is asked in each pass. Defaults to none.
	Flows func(ctx context.Context) (map[string]bool, error)
	// FlowDefault holds for runs of flows that say nothing, Default for those of all other types,
	// as [retention.ParseDefault] reads them. Default to "3 soft 3" and "7d".
	FlowDefault, Default string
	// Grace is how long a run stays in any case, at least 10 s: for as long somebody who has no
	// answer may repeat a start. Defaults to 2 minutes.
	Grace time.Duration
	// Delay is how long [Janitor.Run] only reads, so that whoever starts a server can say first
	// what is to be kept. Negative means none. Defaults to 5 minutes.
	Delay time.Duration
	// Every is the pause between passes of [Janitor.Run], at least 1 s. Defaults to 30 s.
	Every time.Duration
	// SweepEvery is the pause between looks of [Janitor.Run] at the payloads that are kept beside
	// the histories, at least 1 h: if any is older than a day, a look reads all histories whole, a
	// fifth of the time at most. Defaults to 6 hours.
	SweepEvery time.Duration
	// Rate is how many runs are purged in a second at most. Defaults to 200: one whose records lie
	// far apart costs the server 4 ms.
	Rate int
	// SoftBytes bounds what the runs take in memory that are purged from disk and kept softly;
	// those that ended first go first, and one that takes more than a quarter is not kept. Negative
	// means none. Defaults to 64 MiB.
	SoftBytes int
	// Node is the name of this process in explanations. Defaults to none.
	Node string
	// Holds tells whether nothing may be purged now, because a start may be repeated whose run
	// would begin anew. It is asked again and again in each pass. Defaults to never.
	Holds func() bool
	// Note notes that somebody had a run deleted. Defaults to nobody.
	Note func(ctx context.Context, o ops.Operation)
	// Before is called before each request that purges, with its stream and what it purges; an
	// error ends the pass there, as a crash would. For tests. Defaults to none.
	Before func(stream, what string) error
	// Observer is told of each pass of [Janitor.Run] that came to its end, by the goroutine that
	// does it. Its panics are logged. Defaults to none.
	Observer func(*Report)
	// Logger is told of what goes. Defaults to none.
	Logger logrus.FieldLogger
}

// Defaults of [Options], as they are written.
const (
	FlowDefault = "3 soft 3"
	Default     = "7d"
)

func (o Options) withDefaults() Options {
	o.FlowDefault = cmp.Or(o.FlowDefault, FlowDefault)
	o.Default = cmp.Or(o.Default, Default)
	o.Grace = cmp.Or(o.Grace, 2*time.Minute)
	o.Delay = cmp.Or(o.Delay, 5*time.Minute)
	o.Every = cmp.Or(o.Every, 30*time.Second)
	o.SweepEvery = cmp.Or(o.SweepEvery, 6*time.Hour)
	o.Rate = cmp.Or(o.Rate, 200)
	o.SoftBytes = cmp.Or(o.SoftBytes, 64<<20)
	if o.Flows == nil {
		o.Flows = func(context.Context) (map[string]bool, error) { return nil, nil }
	}
	if o.Holds == nil {
		o.Holds = func() bool { return false }
	}
	if o.Note == nil {
		o.Note = func(context.Context, ops.Operation) {}
	}
	if o.Before == nil {
		o.Before = func(string, string) error { return nil }
	}
	o.Logger = logx.Or(o.Logger)
	return o
}

func (o Options) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("retention: %w: %s", ErrInvalidOptions, fmt.Sprintf(format, args...))
	}
	switch {
	case o.Conn == nil:
		return bad("Conn is nil: dial the NATS server of the namespace")
	case o.Partitions < 1:
		return bad("Partitions is %d: want what topology.Lookup reports, at least 1", o.Partitions)
	case o.Grace < 10*time.Second:
		return bad("Grace is %v: use at least 10s, or 0 for 2m", o.Grace)
	case o.Every < time.Second:
		return bad("Every is %v: use at least 1s, or 0 for 30s", o.Every)
	case o.SweepEvery < looksApart:
		return bad("SweepEvery is %v: use at least 1h, or 0 for 6h", o.SweepEvery)
	case o.Rate < 1:
		return bad("Rate is %d: use at least 1, or 0 for 200", o.Rate)
	}
	if err := subject.ValidateNamespace(string(o.Namespace)); err != nil {
		return bad("Namespace: %v", err)
	}
	for _, d := range []struct{ field, text string }{{"FlowDefault", o.FlowDefault}, {"Default", o.Default}} {
		if _, err := retention.ParseDefault(d.text); err != nil {
			return bad("%s: %v", d.field, err)
		}
	}
	return nil
}
