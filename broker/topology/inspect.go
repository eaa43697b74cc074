package topology

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
)

// StreamState is a stream as it stands.
type StreamState struct {
	Name     string
	Replicas int // that it is to have
	// Leader is "" on a server without a cluster. Away are the replicas that are offline, After
	// those that are not current.
	Leader        string
	Away, Lagging []string
	// Version is that of the NATS server which has answered for the stream, its leader; "" from
	// servers before 2.11.
	Version string
	// Async says that a message is acknowledged before it is written.
	Async    bool
	Messages uint64
	Bytes    uint64
	// Oldest is when the first message that is left was stored, the zero time if there is none.
	Oldest time.Time
}

// Difference is what a stream should have, and has not.
type Difference struct {
	Stream string
	// Field is what differs. "" means that the stream is missing.
	Field string
	// Conflict says that [Ensure] refuses it; what is left out it changes at the next start of a
	// server.
	Conflict bool
	// Err says it in words, with the way out, for a conflict.
	Err error
}

// Inspection is what [Inspect] finds.
type Inspection struct {
	Info
	Streams        []StreamState
	Differences    []Difference
	ForeignStreams []ForeignStream
}

// Repeatable tells whether the stream may acknowledge before it writes: an owner repeats from the
// histories what is in it.
func (i *Inspection) Repeatable(stream string) bool {
	kind := kindOf(i.Name, stream)
	return i.Relaxed && (kind == "tasks" || kind == "alarms")
}

// CheckServer refuses a server that is too old or lacks JetStream, as [Ensure] does: with
// [ErrServerTooOld] or [ErrNoJetStream].
func CheckServer(ctx context.Context, conn *natsconn.Conn) error {
	ctx, stop := untilRefused(ctx, conn)
	defer stop()
	w := &work{js: conn.JetStream(), log: logx.Or(nil)}
	if err := orRefused(ctx, w.checkServer(ctx, conn)); err != nil {
		return fmt.Errorf("topology: %w", err)
	}
	return nil
}

// Inspect compares the streams of a namespace with what [Ensure] would make of them, and changes
// nothing. Errors: [ErrNoNamespace], [*natsconn.RefusedError], [*ConflictError] for a signals
// stream that is none, or what the server said.
func Inspect(
	ctx context.Context, conn *natsconn.Conn, name subject.Namespace,
) (*Inspection, error) {
	info, err := Lookup(ctx, conn, name)
	if err != nil {
		return nil, err
	}
	ctx, stop := untilRefused(ctx, conn)
	defer stop()
	w := &work{js: conn.JetStream(), log: logx.Or(nil)}
	i := &Inspection{Info: *info}
	if err := w.inspect(ctx, i); err != nil {
		return nil, fmt.Errorf("topology: namespace %s: %w", name, orRefused(ctx, err))
	}
	return i, nil
}

func (w *work) inspect(ctx context.Context, i *Inspection) error {
	ns, version := &i.Namespace, buildVersion()
	all := append([]wanted{ns.signals(version)}, ns.streams(version)...)
	all = append(all, ns.buckets(version)...)
	late, err := w.late(ctx, ns, version)
	if err != nil {
		return err
	}
	all = append(all, late...)
	infos, errs := make([]*jetstream.StreamInfo, len(all)), make([]error, len(all))
	each(len(all), func(n int) { infos[n], errs[n] = w.streamInfo(ctx, all[n].Name) })
	for n := range all {
		switch {
		case errors.Is(errs[n], jetstream.ErrStreamNotFound):
			missing, err := w.missing(ctx, all[n].StreamConfig)
			if err != nil {
				return err
			}
			i.Differences = append(i.Differences, missing)
		case errs[n] != nil:
			return errs[n]
		default:
			i.Streams = append(i.Streams, state(infos[n]))
			i.Differences = append(i.Differences, all[n].differences(&infos[n].Config)...)
		}
	}
	if lostPayloads(ns.Name, infos) {
		i.Differences = append(i.Differences, Difference{Stream: ns.Name.StreamPayloads()})
	}
	i.ForeignStreams, err = w.foreignStreams(ctx, ns.Name)
	return err
}

// missing is the difference of a stream that is not there: another one may have its subjects, which
// [Ensure] refuses.
func (w *work) missing(ctx context.Context, want jetstream.StreamConfig) (Difference, error) {
	taken, err := w.taken(ctx, want)
	if err != nil || taken == nil {
		return Difference{Stream: want.Name}, err
	}
	return Difference{Stream: want.Name, Field: taken.Field, Conflict: true, Err: taken}, nil
}

func (w *wanted) differences(have *jetstream.StreamConfig) []Difference {
	if err := w.conflict(have); err != nil {
		field := ""
		if c, ok := errors.AsType[*ConflictError](err); ok {
			field = c.Field
		}
		return []Difference{{Stream: w.Name, Field: field, Conflict: true, Err: err}}
	}
	if _, changed := w.merge(have); len(changed) > 0 {
		return []Difference{{Stream: w.Name, Field: strings.Join(changed, ", ")}}
	}
	return nil
}

// metaServerVersion is what a server adds to the metadata of a stream that it tells of: its own
// version.
const metaServerVersion = "_nats.ver"

// TooOld says what is wrong with the server that leads the stream, as [CheckServer] says it of the
// one that we are connected to: with [ErrServerTooOld]. It is nil if nothing is.
func (s *StreamState) TooOld() error { return checkVersion(s.Version) }

func state(i *jetstream.StreamInfo) StreamState {
	s := StreamState{
		Name: i.Config.Name, Replicas: max(i.Config.Replicas, 1),
		Async:    i.Config.PersistMode == jetstream.AsyncPersistMode,
		Messages: i.State.Msgs, Bytes: i.State.Bytes, Version: i.Config.Metadata[metaServerVersion],
	}
	if i.State.Msgs > 0 {
		s.Oldest = i.State.FirstTime
	}
	if i.Cluster == nil {
		return s
	}
	s.Leader = i.Cluster.Leader
	for _, p := range i.Cluster.Replicas {
		switch {
		case p.Offline:
			s.Away = append(s.Away, p.Name)
		case !p.Current:
			s.Lagging = append(s.Lagging, p.Name)
		}
	}
	return s
}
