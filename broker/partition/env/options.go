package env

import (
	"cmp"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/stats"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/schemas"
)

// Options configure a broker. The zero value of every field is its default.
type Options struct {
	// Namespace is served. Defaults to "default".
	Namespace string
	// Partitions is how many the namespace has, as topology.Ensure reports it. Required.
	Partitions int
	// Claims holds the partitions. Required.
	Claims *claims.Claims
	// Node names this process in claims, fences and answers. Required.
	Node string
	// Version is shown by the micro service. Defaults to "0.0.0".
	Version string
	// Execution holds the limits and default timeouts of runs.
	Execution execution.Config
	// RequireTypes refuses workflow and activity types that are not registered. Defaults to false.
	RequireTypes bool
	// Synced says that the server loses nothing that it has acknowledged: it syncs every write.
	// Then nothing is repaired when another server is met. Defaults to false, which is always safe.
	Synced bool
	// Predecessors are the ids of the NATS servers that had the store before the one in this
	// process, as far back as they ended properly, with everything that they had acknowledged on
	// disk. That is then not repeated. Defaults to none.
	Predecessors []string
	// Stage makes commits to a history stream in groups cheap, or tells why they are not; nil where
	// they never are. The records that come in while others are being synced are then stored and
	// synced together. Defaults to none.
	Stage func(stream string) error
	// Expendable is told the name of a task list's stream before that is made: what is in it can be
	// repeated (P-8). Defaults to none.
	Expendable func(stream string) error
	// Quorum tells why nothing can be stored here at the moment, or nil. It is asked four times a
	// second. While it tells something, requests are refused at once instead of being left to wait.
	// Defaults to none.
	Quorum func() error
	// Quota tells how many bytes all streams of the NATS server take, and may take; a limit of 0 is
	// none. It is asked every two seconds, and more often near the limit. Above nine tenths no run
	// begins, as in a namespace or an account that is full. Defaults to none.
	Quota func() (bytes, limit int64)
	// Changed is told of the records of a partition that is owned here, some time after they were
	// acknowledged: those numbered from, to to, and the runs that they belong to, each once, in the
	// order of their last records. What it is not told of, as what other owners have written,
	// stands in the history alone. It must not block. It may keep changed, and must not write to
	// it. Defaults to none. retention.Janitor.Changed is one.
	Changed func(partition int, from, to uint64, changed []Change)
	// MaxObject is the size in bytes of the largest payload that is taken. Those above
	// schemas.PayloadThreshold are kept in the object store; what comes in one message is bound by
	// the server's max_payload alone. Defaults to 64 MiB.
	MaxObject int64
	// CachedRuns bounds the runs that a partition keeps folded in memory while nothing happens to
	// them. Above a sixteenth of it a run goes after two seconds, the others after ten; of an open
	// one its place in the history stays. Defaults to 10,000.
	CachedRuns int
	// SnapshotEvents is after how many events a record carries a snapshot. Defaults to 300.
	SnapshotEvents int
	// CheckpointEvery is how often positions are written. Defaults to 300 ms.
	CheckpointEvery time.Duration
	// AlarmDelay is how long a run may stand before its alarm is made durable; until then the
	// effects position waits for it, so a crash forgets nothing. An alarm that is due sooner is
	// armed at once. Defaults to 1 s.
	AlarmDelay time.Duration
	// DrainTimeout is how long a broker that is told to stop waits for decisions that deciders are
	// making. It gives its partitions to others before that; only if there are none it keeps them
	// so long. Defaults to 5 minutes.
	DrainTimeout time.Duration
	// Stats counts what happens. Defaults to none.
	Stats *stats.Stats
	// Logger takes what operators should know. Defaults to nothing.
	Logger logrus.FieldLogger
}

// defaultMaxObject is the size in bytes of the largest payload by default.
const defaultMaxObject = 64 << 20

func (o Options) WithDefaults() (Options, error) {
	o.Namespace = cmp.Or(o.Namespace, "default")
	o.Version = cmp.Or(o.Version, "0.0.0")
	o.MaxObject = cmp.Or(o.MaxObject, defaultMaxObject)
	o.CachedRuns = cmp.Or(o.CachedRuns, 10_000)
	o.SnapshotEvents = cmp.Or(o.SnapshotEvents, 300)
	o.CheckpointEvery = cmp.Or(o.CheckpointEvery, 300*time.Millisecond)
	o.AlarmDelay = cmp.Or(o.AlarmDelay, time.Second)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, 5*time.Minute)
	o.Execution = o.Execution.Defaults()
	if o.Stats != nil {
		o.Execution.Happens = o.Stats.Happens
	}
	o.Logger = logx.Or(o.Logger)
	switch {
	case o.Partitions < 1:
		return o, fmt.Errorf(
			"broker: Partitions is %d; want what topology.Ensure reports, at least 1", o.Partitions)
	case o.Claims == nil:
		return o, fmt.Errorf("broker: Claims is missing; open the namespace's claims bucket")
	case o.Node == "":
		return o, fmt.Errorf("broker: Node is empty; want a name that no other live process has")
	case o.MaxObject < schemas.PayloadThreshold:
		return o, fmt.Errorf("broker: MaxObject is %d; want at least %d, or 0 for %d",
			o.MaxObject, schemas.PayloadThreshold, defaultMaxObject)
	case o.CachedRuns < 1 || o.SnapshotEvents < 1:
		return o, fmt.Errorf("broker: CachedRuns is %d and SnapshotEvents %d; want at least 1",
			o.CachedRuns, o.SnapshotEvents)
	}
	if err := schemas.ValidateName("Namespace", o.Namespace); err != nil {
		return o, fmt.Errorf("broker: %w", err)
	}
	return o, nil
}

// Change is a run that has changed, and the last of its records that say so.
type Change struct {
	// Sequence is that of the record in its partition's history.
	Sequence uint64
	// Line is what the headers of the record tell, but for ClosedAt: that is the time of its last
	// event, which is a little older.
	Line runs.Line
	// Reason is why the run has failed, as runs.Reason tells it; empty if it has not.
	Reason string
}
