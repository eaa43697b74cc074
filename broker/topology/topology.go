// Package topology makes the streams, buckets and consumers of a namespace, and refuses those that
// do not fit.
//
// It is called by the server at start ([Ensure]) and by the broker on the first use of a task list
// ([EnsureList]). [Names], [List], [Describe] and [Delete] keep the namespaces of a NATS account;
// package namespaces does that for clients. Workers never come here: they need no right to create
// anything.
//
// Invariants:
//   - Every call is idempotent, and any number of processes may make the same call at once. Nothing
//     but [Delete] deletes anything, except what a call has made after a deletion that had looked
//     for it before, and no message is touched.
//   - The number of partitions is fixed when a namespace is made, because it decides where a
//     workflow lives. It stands in the metadata of the signals stream, which is made before all
//     others: whoever makes that stream decides for everybody. An option that is not set takes what
//     the namespace has. If that stream was lost, the others tell the number.
//   - What can be changed without touching messages is brought to what the options say: limits,
//     replicas, discard policy, descriptions. What cannot, or what would put messages at risk
//     (subjects, retention, storage, message TTLs and schedules on a stream that must not have
//     them), is a [*ConflictError] and nothing is changed.
//   - What an operator has set beside that is left alone: placement, republishing, metadata of
//     others.
//   - A namespace begins and ends with its signals stream. [Delete] marks that stream first, which
//     tells the servers to let go and [Ensure] to keep off, and deletes it last; so whatever is
//     left after a crash is found again by its name.
//
// # Streams
//
// Inboxes and signals may be published to by less trusted roles. They have no rollup, no message
// TTL and no schedules, because with any of them one publish permission is as good as all of them.
// All streams discard new messages when they are full, so that a limit refuses a publish and never
// drops a message that was acknowledged; only dead letters lose their oldest, because a full heap
// of them must not stop the work. Histories, inboxes, signals and dead letters cannot have single
// messages deleted; they are purged by sequence or subject.
package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/nats-io/nats.go/jetstream"
)

// Namespace is what a namespace was made with.
type Namespace struct {
	Name       subject.Namespace
	Partitions int
	Replicas   int   // of each stream
	Memory     bool  // streams are in memory, not in files
	MaxBytes   int64 // limit of each stream, in bytes; 0 = none
	// Compression is what the server makes of full blocks of histories: [CompressionNone] or
	// [CompressionS2].
	Compression string
	// Synced namespaces are on a server of ours that syncs every write. Their histories take
	// several records with one sync.
	Synced bool
	// Relaxed namespaces were made on such a server. Their tasks and alarms, which an owner can
	// repeat from the histories (P-8), are acknowledged before they are written.
	Relaxed bool

	RequireTypes bool   // workflows and activities of types that are not registered are refused
	Description  string // what it is for
	// FlowRetention and Retention are how closed runs of flows and of other types are kept that say
	// nothing themselves.
	FlowRetention, Retention string
}

// String prints the namespace as one line of words, for the log.
func (n *Namespace) String() string {
	storage := "file"
	if n.Memory {
		storage = "memory"
	}
	s := fmt.Sprintf("namespace=%s partitions=%d replicas=%d storage=%s",
		n.Name, n.Partitions, n.Replicas, storage)
	if n.MaxBytes > 0 {
		s += fmt.Sprintf(" max-bytes=%d", n.MaxBytes)
	}
	s += unless("compression", n.Compression, CompressionNone) +
		unless("retention-flows", n.FlowRetention, DefaultFlowRetention) +
		unless("retention", n.Retention, DefaultRetention)
	if n.RequireTypes {
		s += " require-types=true"
	}
	if n.Relaxed {
		s += " relaxed=true"
	}
	return s
}

// unless is a word about a setting, if it is not the default.
func unless(name, has, def string) string {
	if has == "" || has == def {
		return ""
	}
	return fmt.Sprintf(" %s=%q", name, has)
}

// parallel is how many streams are made at once. On a cluster each waits for an election; on one
// host for the disk.
const parallel = 8

// atOnce is how many streams of the namespace are made at once. Those that reserve room on one
// server are made one after the other: NATS looks whether there is room before it takes it, so that
// several at once may take more than there is, and then it refuses every change, that which begins
// a deletion too.
func (n *Namespace) atOnce() int {
	if n.MaxBytes > 0 && n.Replicas <= 1 {
		return 1
	}
	return parallel
}

// Ensure makes what is missing of a namespace, brings limits to what the options say, and tells
// what the namespace has. Without a deadline in ctx it waits up to 15 seconds for a cluster that
// has no leader.
//
// Errors: [ErrInvalidOptions], [ErrServerTooOld], [ErrNoJetStream], [ErrDeleting],
// [*ConflictError], [*natsconn.RefusedError], or what the server said.
func Ensure(ctx context.Context, conn *natsconn.Conn, o Options) (*Namespace, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	ctx, stop := untilRefused(ctx, conn)
	defer stop()
	w := &work{js: conn.JetStream(), log: o.Logger}
	ns, err := w.ensure(ctx, conn, o)
	if err = orRefused(ctx, err); err != nil {
		return nil, fmt.Errorf("topology: namespace %s: %w", o.Namespace, err)
	}
	o.Logger.WithField("namespace", o.Namespace).Debugf("topology ready: %v", ns)
	return ns, nil
}

func (w *work) ensure(ctx context.Context, conn *natsconn.Conn, o Options) (*Namespace, error) {
	if err := w.checkServer(ctx, conn); err != nil {
		return nil, err
	}
	ns, err := w.anchor(ctx, conn, o)
	if err != nil {
		return nil, err
	}
	w.made = nil
	if err := w.complete(ctx, conn, ns, o); err != nil {
		w.undo(ctx, ns.Name)
		return nil, err
	}
	return ns, nil
}

// undo removes the streams that were made since the namespace has begun to end: who deletes it may
// have looked for them before, and nobody finds them then. Others of it stay, for its signals
// stream may be gone by accident.
func (w *work) undo(ctx context.Context, name subject.Namespace) {
	for _, stream := range w.made {
		if stream == bucketPrefix+subject.BucketNodes {
			continue // it is that of all namespaces
		}
		if err := w.outlives(ctx, name, stream); err != nil && !errors.Is(err, ErrDeleting) {
			w.log.WithError(err).WithField("stream", stream).Warn(
				"a stream of a namespace that was deleted meanwhile may be left: delete the namespace again")
		}
	}
}

// complete makes what is missing after the signals stream.
func (w *work) complete(ctx context.Context, conn *natsconn.Conn, ns *Namespace, o Options) error {
	buckets := ns.buckets(o.Version)
	if err := w.aboveFences(ctx, conn, ns, buckets); err != nil {
		return err
	}
	streams := append(ns.streams(o.Version), buckets...)
	if o.Replicas != 0 || o.MaxBytes != 0 {
		late, err := w.late(ctx, ns, o.Version)
		if err != nil {
			return err
		}
		streams = append(streams, late...)
	}
	if err := w.all(ctx, streams, ns.atOnce()); err != nil {
		return err
	}
	// Somebody may have deleted it meanwhile.
	have, err := w.info(ctx, ns.Name.StreamSignals())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("%w meanwhile: make it anew", ErrDeleting)
	}
	if err != nil {
		return err
	}
	switch now, err := read(have, ns.Name); {
	case err != nil:
		return err
	case now.Partitions != ns.Partitions:
		return fmt.Errorf(
			"%w: it was deleted meanwhile and made anew with %d partitions, not %d: start again",
			ErrConflict, now.Partitions, ns.Partitions)
	}
	return nil
}

// anchor makes or reads the signals stream, which decides what the namespace is. What the options
// leave open comes from it.
func (w *work) anchor(ctx context.Context, conn *natsconn.Conn, o Options) (*Namespace, error) {
	name := subject.Namespace(o.Namespace)
	for range attempts {
		have, err := w.info(ctx, name.StreamSignals())
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			ns := o.fresh()
			left, err := w.remains(ctx, ns)
			if err != nil {
				return nil, err
			}
			if left != nil {
				if ns, err = o.adopt(left); err != nil {
					return nil, err
				}
			} else if err := w.elsewhere(ctx, conn, name); err != nil {
				return nil, err
			}
			err = w.create(ctx, ns.signals(o.Version).StreamConfig)
			if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
				continue // another process was faster, perhaps with other options
			}
			if err == nil && left != nil {
				w.log.WithField("namespace", name).Warnf(
					"the signals stream was gone, and what the namespace was made with; it is made anew: %v; "+
						"closed runs are kept for ever where nothing says how long: say again "+
						"what holds, which is --retention %q --retention-flows %q if nothing "+
						"else was said, and description or required types if it had them: "+
						"drover namespace create %s --help", ns, DefaultRetention,
					DefaultFlowRetention, name)
			}
			return ns, err
		}
		if err != nil {
			return nil, err
		}
		ns, err := o.merge(have, name)
		if err != nil {
			return nil, err
		}
		next := ns.signals(o.Version)
		for key, value := range map[string]string{metaFlowRetention: ns.FlowRetention, metaRetention: ns.Retention} {
			if have.Metadata[key] != "" {
				next.Metadata[key] = value // what is left out stays as it was
			}
		}
		return ns, w.stream(ctx, next)
	}
	return nil, fmt.Errorf("stream %s comes and goes: is something deleting it?",
		name.StreamSignals())
}

// merge joins what the options ask with what the namespace was made with.
func (o Options) merge(have *jetstream.StreamConfig, name subject.Namespace) (*Namespace, error) {
	ns, err := read(have, name)
	if err != nil {
		return nil, err
	}
	if o.Partitions != 0 && o.Partitions != ns.Partitions {
		return nil, &ConflictError{
			Stream: have.Name, Field: "the number of partitions", Have: strconv.Itoa(ns.Partitions),
			Want: strconv.Itoa(o.Partitions),
			Hint: fmt.Sprintf(
				"it is fixed when a namespace is made: leave Partitions out or set it to %d, or make another namespace",
				ns.Partitions),
		}
	}
	ns.Memory = o.Memory // a difference is found with the stream itself
	ns.Synced = o.Synced
	if o.Replicas != 0 {
		ns.Replicas = o.Replicas
	}
	if o.MaxBytes != 0 {
		ns.MaxBytes = max(o.MaxBytes, 0)
	}
	if o.RequireTypes != nil {
		ns.RequireTypes = *o.RequireTypes
	}
	if ns.Replicas > 1 {
		if o.Compression == CompressionS2 {
			return nil, errCopies(ns.Replicas)
		}
		ns.Compression = CompressionNone
	}
	ns.Compression = cmp.Or(o.Compression, ns.Compression)
	ns.Description = cmp.Or(o.Description, ns.Description)
	ns.FlowRetention = cmp.Or(o.FlowRetention, ns.FlowRetention)
	ns.Retention = cmp.Or(o.Retention, ns.Retention)
	return ns, nil
}

// namespace reads what a namespace was made with. One that is not there is refused, or that is
// being deleted.
func (w *work) namespace(ctx context.Context, name subject.Namespace) (*Namespace, error) {
	signals, err := w.info(ctx, name.StreamSignals())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf(
			"%w: start a server for it, or create it with \"drover namespace create %s\"",
			ErrNoNamespace, name)
	}
	if err != nil {
		return nil, err
	}
	return read(signals, name)
}

// read tells what a namespace was made with, from its signals stream. One that is being deleted is
// refused.
func read(have *jetstream.StreamConfig, name subject.Namespace) (*Namespace, error) {
	ns, err := readAny(have, name)
	if err == nil && have.Metadata[metaDeleting] != "" {
		return nil, fmt.Errorf("%w since %s: finish that with \"drover namespace delete %s\"",
			ErrDeleting, have.Metadata[metaDeleting], name)
	}
	return ns, err
}

// readAny is read for a namespace in any state.
func readAny(have *jetstream.StreamConfig, name subject.Namespace) (*Namespace, error) {
	const restore = "Drover did not make this stream, or its metadata was changed: restore it, " +
		"delete the stream, or choose another namespace"
	if got := have.Metadata[metaNamespace]; got != string(name) {
		return nil, &ConflictError{
			Stream: have.Name, Field: "metadata " + metaNamespace, Have: quoted(got),
			Want: quoted(string(name)), Hint: restore,
		}
	}
	p, err := strconv.Atoi(have.Metadata[metaPartitions])
	if err != nil || p < 1 || p > subject.MaxPartitions {
		return nil, &ConflictError{
			Stream: have.Name, Field: "metadata " + metaPartitions,
			Have: quoted(have.Metadata[metaPartitions]),
			Want: fmt.Sprintf("1 to %d", subject.MaxPartitions), Hint: restore,
		}
	}
	return &Namespace{
		Name: name, Partitions: p, Replicas: have.Replicas,
		Memory: have.Storage == jetstream.MemoryStorage, MaxBytes: max(have.MaxBytes, 0),
		Relaxed: have.Metadata[metaRelaxed] == "true", Compression: have.Metadata[metaCompression],
		RequireTypes:  have.Metadata[metaRequireTypes] == "true",
		Description:   have.Metadata[metaDescription],
		FlowRetention: cmp.Or(have.Metadata[metaFlowRetention], DefaultFlowRetention),
		Retention:     cmp.Or(have.Metadata[metaRetention], DefaultRetention),
	}, nil
}

// fresh is a namespace that does not exist yet.
func (o Options) fresh() *Namespace {
	return &Namespace{
		Name: subject.Namespace(o.Namespace), Memory: o.Memory, MaxBytes: max(o.MaxBytes, 0),
		Partitions: cmp.Or(o.Partitions, defaultPartitions), Replicas: cmp.Or(o.Replicas, 1),
		Synced: o.Synced, Relaxed: o.Synced && !o.Memory && o.Replicas <= 1,
		Compression:  cmp.Or(o.Compression, CompressionNone),
		RequireTypes: o.RequireTypes != nil && *o.RequireTypes, Description: o.Description,
		FlowRetention: cmp.Or(o.FlowRetention, DefaultFlowRetention),
		Retention:     cmp.Or(o.Retention, DefaultRetention),
	}
}
