package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/openruns"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/schemas"
)

var (
	// ErrDeleting reports a namespace that somebody has begun to delete.
	ErrDeleting = errors.New("the namespace is being deleted")
	// ErrOpenRuns is wrapped by every [*OpenRunsError].
	ErrOpenRuns = errors.New("runs are open")
)

// OpenRunsError refuses to delete a namespace that has open runs.
type OpenRunsError struct {
	Open       int    // how many, at least 1
	WorkflowID string // of one of them, the same each time
}

// Error names one of the runs and the way out.
func (e *OpenRunsError) Error() string {
	return fmt.Sprintf("%v: %d, such as one of workflow %q: let them end, or force the deletion",
		ErrOpenRuns, e.Open, e.WorkflowID)
}

// Unwrap returns [ErrOpenRuns].
func (e *OpenRunsError) Unwrap() error { return ErrOpenRuns }

const (
	// defaultLetGo outlasts the claim of a server that has crashed.
	defaultLetGo = 12 * time.Second
	letGoEvery   = 50 * time.Millisecond
	maxReason    = 1024
	newerOne     = "somebody else has deleted it, and perhaps made it anew: look at \"drover namespace list\""
)

// DeleteOptions of [Delete].
type DeleteOptions struct {
	// Force deletes a namespace although runs are open.
	Force bool
	// Made is when the namespace was made that is meant: a later one of its name is left alone.
	// Defaults to whichever there is.
	Made time.Time
	// Reason is logged, and shown for as long as the deletion is not complete. Defaults to none.
	Reason string
	// LetGo is how long servers may take to let go of the namespace. After that it is deleted all
	// the same; a server that crashed lets go when its claims expire. Defaults to 12 s.
	LetGo time.Duration
	// Logger is told what is deleted. Defaults to none.
	Logger logrus.FieldLogger
}

// Delete deletes a namespace with all that it holds: histories, task lists, buckets, payloads. The
// servers are told first and let go of it. Any number of processes may delete it at once, and one
// that is cut short is completed by the next: the signals stream, by which a namespace is found,
// goes last.
//
// A start that arrives while the open runs are counted may be lost with the rest.
//
// Errors: [*OpenRunsError], [ErrNoNamespace] if nothing is left of it, [*ConflictError] if it is
// not Drover's, or what the server said.
func Delete(ctx context.Context, conn *natsconn.Conn, ns subject.Namespace, o DeleteOptions) error {
	if err := remove(ctx, conn, ns, o); err != nil {
		return fmt.Errorf("topology: delete namespace %s: %w", ns, err)
	}
	return nil
}

// remove is Delete, with errors that leave out what was asked for.
func remove(ctx context.Context, conn *natsconn.Conn, ns subject.Namespace, o DeleteOptions) error {
	o.LetGo = cmp.Or(o.LetGo, defaultLetGo)
	o.Logger = logx.Or(o.Logger).WithField("namespace", ns)
	if err := subject.ValidateNamespace(string(ns)); err != nil {
		return err
	}
	if len(o.Reason) > maxReason {
		return fmt.Errorf("%w: Reason has %d bytes: use at most %d",
			ErrInvalidOptions, len(o.Reason), maxReason)
	}
	d := &deletion{work: work{js: conn.JetStream(), log: o.Logger}, conn: conn, ns: ns, o: o}
	return d.run(ctx)
}

// deletion is one call of Delete.
type deletion struct {
	work
	conn *natsconn.Conn
	ns   subject.Namespace
	o    DeleteOptions
	// born is when the signals stream was made, by which this namespace is told from a later one of
	// the same name. The zero time stands for what is left over without that stream.
	born time.Time
}

func (d *deletion) run(ctx context.Context) error {
	info, err := d.lookup(ctx, d.ns)
	switch {
	case errors.Is(err, ErrNoNamespace):
		return d.leftovers(ctx, err)
	case err != nil:
		return err
	}
	if d.born = info.Created; !d.o.Made.IsZero() && !d.born.Equal(d.o.Made) {
		return fmt.Errorf(
			"%w any more: the one that was made at %s is gone, and there is a later one of its name",
			ErrNoNamespace, schemas.At(d.o.Made))
	}
	if !info.Deleting {
		if err := d.mayDelete(ctx, info); err != nil {
			return err
		}
		if err := d.mark(ctx); err != nil {
			return err
		}
		d.log.WithField("reason", d.o.Reason).Info("namespace is being deleted")
	}
	defer d.tell()
	d.tell()
	if err := d.letGo(ctx); err != nil {
		return err
	}
	if _, err := d.sweep(ctx); err != nil {
		return err
	}
	return d.remove(ctx, d.ns.StreamSignals())
}

// leftovers removes what a process has made that did not see the end of the namespace.
func (d *deletion) leftovers(ctx context.Context, missing error) error {
	removed, err := d.sweep(ctx)
	if err == nil && removed == 0 {
		return missing
	}
	return err
}

// mayDelete counts the open runs.
func (d *deletion) mayDelete(ctx context.Context, info *Info) error {
	if d.o.Force {
		return nil
	}
	found := &OpenRunsError{}
	for p := range info.Partitions {
		var runs openruns.Runs
		err := d.conn.Scan(ctx, d.ns.StreamHistory(p), natsconn.ReadOptions{HeadersOnly: true},
			func(m natsconn.Stored) error {
				return runs.Note(m.Seq, m.Subject, m.Header.Get(schemas.StatusHeader))
			})
		if err != nil && !errors.Is(err, natsconn.ErrNoStream) {
			return fmt.Errorf("count the open runs: %w", err)
		}
		for subj := range runs.Open() {
			_, wid, _, _ := subject.ParseHistory(subj)
			if found.Open++; found.Open == 1 || wid < found.WorkflowID {
				found.WorkflowID = wid
			}
		}
	}
	if found.Open > 0 {
		return found
	}
	return nil
}

// mark makes it known that the namespace ends. Two who mark it at once do the same. The stream is
// read again before each try, because to count the runs may have taken long, and after a lost
// answer it may be another one.
func (d *deletion) mark(ctx context.Context) error {
	err := d.retry(ctx, func(ctx context.Context) error {
		s, err := d.streamInfo(ctx, d.ns.StreamSignals())
		if err != nil {
			return err
		}
		if !s.Created.Equal(d.born) {
			return fmt.Errorf("%w: %s", ErrConflict, newerOne)
		}
		next := s.Config
		next.Metadata = maps.Clone(next.Metadata)
		next.Metadata[metaDeleting] = time.Now().UTC().Format(time.RFC3339)
		if d.o.Reason != "" {
			next.Metadata[metaDeletingReason] = d.o.Reason
		}
		_, err = d.js.UpdateStream(ctx, next)
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil // another process was faster; what it may have left is ours to remove
	case errors.Is(err, ErrConflict):
		return err
	case err != nil:
		return refused("mark stream "+d.ns.StreamSignals(), err)
	}
	return nil
}

// tell sends word to the servers. It is a hint, they look by themselves too.
func (d *deletion) tell() { _ = d.conn.Publish(schemas.NamespacesChanged, nil, []byte(d.ns)) }

// letGo waits until nobody holds a claim of the namespace. A stream that is deleted under its owner
// would make it complain and try again.
func (d *deletion) letGo(ctx context.Context) error {
	limit := time.NewTimer(d.o.LetGo)
	defer limit.Stop()
	tick := time.NewTicker(letGoEvery)
	defer tick.Stop()
	for {
		keys, err := d.conn.KVKeys(ctx, d.ns.BucketClaims())
		if errors.Is(err, natsconn.ErrNoStream) || err == nil && len(keys) == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-limit.C:
			d.log.WithField("claims", keys).WithError(err).
				Warn("somebody does not let go of the namespace; it is deleted all the same")
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sweep removes everything but the signals stream, the claims last. It looks again until it finds
// nothing, because a server that starts in this moment may still make what it misses.
func (d *deletion) sweep(ctx context.Context) (removed int, err error) {
	for range attempts {
		streams, err := d.belongings(ctx, d.ns)
		if err != nil {
			return removed, err
		}
		streams = slices.DeleteFunc(streams,
			func(s *jetstream.StreamInfo) bool { return s.Config.Name == d.ns.StreamSignals() })
		if len(streams) == 0 {
			return removed, nil
		}
		claims := bucketPrefix + d.ns.BucketClaims()
		slices.SortFunc(streams, func(a, b *jetstream.StreamInfo) int {
			return cmp.Or(order(a.Config.Name == claims)-order(b.Config.Name == claims),
				strings.Compare(a.Config.Name, b.Config.Name))
		})
		for _, s := range streams {
			if err := d.remove(ctx, s.Config.Name); err != nil {
				return removed, err
			}
			removed++
		}
	}
	return removed, fmt.Errorf(
		"its streams come again and again: is a server of an earlier version running?")
}

func order(last bool) int {
	if last {
		return 1
	}
	return 0
}

// remove deletes a stream of this incarnation of the namespace. Whether it is still this one is
// asked before each try, those after a lost answer too: another process may have deleted it, and
// somebody made it anew.
func (d *deletion) remove(ctx context.Context, stream string) error {
	err := d.retry(ctx, func(ctx context.Context) error {
		if err := d.still(ctx, stream); err != nil {
			return err
		}
		return d.js.DeleteStream(ctx, stream)
	})
	switch {
	case errors.Is(err, ErrConflict):
		return err
	case err != nil && !errors.Is(err, jetstream.ErrStreamNotFound):
		return refused("delete stream "+stream, err)
	}
	d.log.WithField("stream", stream).Debug("stream deleted")
	return nil
}

// still returns nil if the namespace is the one that is to be deleted, or none is there any more.
// Its signals stream that is gone is [jetstream.ErrStreamNotFound]: another process was faster.
func (d *deletion) still(ctx context.Context, stream string) error {
	s, err := d.streamInfo(ctx, d.ns.StreamSignals())
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		if stream == d.ns.StreamSignals() {
			return err
		}
		return nil
	case err != nil:
		return err
	case !s.Created.Equal(d.born):
		return fmt.Errorf("%w: %s", ErrConflict, newerOne)
	case s.Config.Metadata[metaDeleting] == "":
		// somebody who had read it before has changed it since, and the mark went with that
		return d.mark(ctx)
	}
	return nil
}
