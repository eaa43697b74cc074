package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/ops/spans"
	"github.com/droverhq/drover/schemas"
)

// mostKin bounds what is remembered of runs above others.
const mostKin = 10_000

// line is what the headers of a record tell.
type line = runs.Line

// follow reads what was written since the last time. If the streams are not those that were read,
// it begins anew.
func (j *Janitor) follow(ctx context.Context) error {
	if server := j.o.Conn.NATS().ConnectedServerId(); server != "" && server != j.server {
		if j.server != "" && j.o.Conn.NATS().ConnectedClusterName() == "" {
			j.forget() // it may have come back with what it had purged
		}
		j.server = server
	}
	for p := range j.o.Partitions {
		err := j.follower.Follow(ctx, p)
		if errors.Is(err, spans.ErrShorter) {
			j.forget()
		}
		if err != nil {
			return fmt.Errorf("read what has closed in partition %d: %w", p, err)
		}
	}
	return nil
}

// note takes the headers of the next record.
func (j *Janitor) note(ctx context.Context, p int, s natsconn.Stored) error {
	if !schemas.HeaderStatus(s.Header.Get(schemas.StatusHeader)).Closed() {
		return nil
	}
	l, err := runs.ReadLine(s)
	if err != nil {
		j.o.Logger.WithField("err", err).WithField("subject", s.Subject).WithField("seq", s.Seq).
			Warn(
				"the headers of a record cannot be read, so its run is kept; drover verify tells more")
		return nil
	}
	return j.closed(ctx, j.entryOf(p, s.Seq, s.Time, l.Run), &l)
}

// entryOf is a run that has closed. Of two of a partition that which closed later is not the
// earlier one, whoever says when it was, so that the runs of a chain are in their order. The caller
// holds passing.
func (j *Janitor) entryOf(p int, seq uint64, at time.Time, run string) entry {
	j.latest[p] = max(j.latest[p], at.UnixNano())
	return entry{closed: j.latest[p], seq: seq, partition: int32(p), id: idOf(run)}
}

// kinship is what is known of a run above another.
type kinship struct {
	open string // the nearest run of it and those above it that is open; empty if none is
	typ  string // its own type; empty if it is gone
}

// kinOf looks at the runs above one. What was found out of runs that are all closed does not change
// any more.
func (j *Janitor) kinOf(ctx context.Context, parent *schemas.Execution) (kinship, error) {
	if parent == nil {
		return kinship{}, nil
	}
	if k, known := j.kin[parent.Run]; known {
		return k, nil
	}
	m, err := j.lastRecord(ctx, parent)
	if errors.Is(err, natsconn.ErrNotFound) {
		return kinship{}, nil // purged, after all above it
	}
	if err != nil {
		return kinship{}, err
	}
	l, err := runs.ReadLine(*m)
	if err != nil {
		return kinship{open: parent.Run},
			nil //nolint:nilerr // whoever cannot be read counts as open
	}
	k := kinship{open: parent.Run, typ: l.Type}
	if l.Status.Closed() {
		up, err := j.kinOf(ctx, l.Parent)
		if err != nil {
			return kinship{}, err
		}
		k.open = up.open
	}
	if k.open == "" {
		if len(j.kin) >= mostKin {
			clear(j.kin)
		}
		j.kin[parent.Run] = k
	}
	return k, nil
}

func (j *Janitor) lastRecord(ctx context.Context, x *schemas.Execution) (*natsconn.Stored, error) {
	p := subject.Partition(x.WorkflowID, j.o.Partitions)
	return j.o.Conn.LastBySubject(ctx, j.o.Namespace.StreamHistory(p),
		j.o.Namespace.History(p, x.WorkflowID, x.Run))
}

// serverTime is that of the servers, by which runs are closed.
func (j *Janitor) serverTime(ctx context.Context) (time.Time, error) {
	at, err := j.o.Conn.StreamTime(ctx, j.o.Namespace.StreamHistory(0))
	return at.UTC(), err
}
