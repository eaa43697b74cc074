package retention

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/duration"
	"github.com/droverhq/drover/schemas"
)

// candidate is a run that is to go, as its last record shows it.
type candidate struct {
	entry
	subject string
	line    line
}

// errGone says that the run is not there any more.
var errGone = errors.New("the run is gone")

// look is one look at whether runs may go. A checkpoint is read once: an older one only keeps more.
type look struct {
	j           *Janitor
	now         time.Time
	checkpoints map[int]schemas.Checkpoint
	chains      map[string][]link // by workflow id, as they were when the look began to need them
	purged      map[string]bool   // subjects
	hard        bool              // what goes is not kept softly
	// stays is told why a run stays that was to go. It may be nil.
	stays func(why string)
}

// may tells whether a run may go by now (P-14): if why is empty it may. An error wraps [errGone] if
// there is nothing to go.
func (k *look) may(ctx context.Context, e entry) (c *candidate, why string, err error) {
	j, p := k.j, int(e.partition)
	cp, err := k.checkpoint(ctx, p)
	switch {
	case err != nil:
		return nil, "", err
	case k.now.Before(e.at().Add(j.o.Grace)):
		return nil, fmt.Sprintf(
			"a closed run stays for %s in any case, so that a start that is repeated finds it",
			duration.String(j.o.Grace)), nil
	case e.seq > cp.Effects:
		return nil, fmt.Sprintf(
			"the owner of partition %d has not written down yet that all it had to do for the run is done",
			p), nil
	case e.seq >= cp.History:
		return nil, fmt.Sprintf(
			"its last record is the highest of partition %d, which stays as the witness of "+
				"where the history ends, until another run there writes one", p), nil
	}
	m, err := j.o.Conn.GetSeq(ctx, j.o.Namespace.StreamHistory(p), e.seq)
	if errors.Is(err, natsconn.ErrNotFound) || err == nil && !e.isIn(m) {
		return nil, "", errGone
	}
	if err != nil {
		return nil, "", err
	}
	c = &candidate{entry: e, subject: m.Subject}
	if c.line, err = runs.ReadLine(*m); err != nil {
		return nil, "", err
	}
	if !c.line.Status.Closed() {
		// the history has lost its end since, and the run stands there again
		return nil, "", errGone
	}
	var r schemas.Record
	if err := schemas.Unmarshal(m.Data, &r); err != nil {
		return nil, "its last record cannot be read: see what drover verify says",
			nil //nolint:nilerr // it stays for people to look at
	}
	if why, err = k.consumed(ctx, c, &r, cp); err != nil || why != "" {
		return c, why, err
	}
	why, err = k.recorded(ctx, c)
	return c, why, err
}

// isIn tells whether a record is of the run.
func (e entry) isIn(m *natsconn.Stored) bool {
	_, _, run, err := subject.ParseHistory(m.Subject)
	return err == nil && idOf(run) == e.id
}

// say tells why a run stays.
func (k *look) say(why string) {
	if k.stays != nil {
		k.stays(why)
	}
}

// checkpoint is what the owner of a partition has written down last; nothing if there never was
// one.
func (k *look) checkpoint(ctx context.Context, p int) (cp schemas.Checkpoint, err error) {
	if cp, known := k.checkpoints[p]; known {
		return cp, nil
	}
	j := k.j
	value, _, err := j.o.Conn.KVGet(ctx, j.o.Namespace.BucketCheckpoints(),
		fmt.Sprintf("partition.%d", p))
	if errors.Is(err, natsconn.ErrNotFound) {
		return cp, nil
	}
	if err == nil {
		err = schemas.Unmarshal(value, &cp)
	}
	if err != nil {
		return cp, fmt.Errorf("the checkpoint of partition %d: %w", p, err)
	}
	k.checkpoints[p] = cp
	return cp, nil
}

// consumed tells whether a message that the run has consumed may be read again, or one is still
// unread that was meant for it. Whoever finds that the history has lost its end reads both logs
// from their beginnings: a start that is still there would begin a purged run anew.
func (k *look) consumed(
	ctx context.Context, c *candidate, r *schemas.Record, cp schemas.Checkpoint,
) (why string, err error) {
	j, p := k.j, int(c.partition)
	ns := j.o.Namespace
	for _, log := range []struct {
		name, stream, filter string
		at, done             schemas.Position
	}{
		{"inbox", ns.StreamIn(p), strings.TrimSuffix(ns.In(p, r.WorkflowID, "x"), "x") + ">", r.Inbox, cp.Inbox},
		{
			"signals", ns.StreamSignals(),
			strings.TrimSuffix(ns.SignalStored(p, r.WorkflowID, "x"), "x") + "*", r.Signals, cp.Signals,
		},
	} {
		if log.done.Before(log.at) {
			return fmt.Sprintf(
				"the checkpoint of partition %d lies before what the run has read of the %s",
				p, log.name), nil
		}
		first, err := j.firstFrom(ctx, log.stream, log.filter, 1)
		switch {
		case err != nil:
			return "", err
		case first == nil:
			continue
		case first.Seq <= log.at.Sequence:
			return fmt.Sprintf(
				"message %d of the %s, which is for its workflow id and was read, is not purged there yet",
				first.Seq, log.name), nil
		}
		if log.name == "inbox" {
			// of what was read after the close only a start that was repeated could begin it anew
			start, err := j.firstFrom(ctx, log.stream, ns.In(p, r.WorkflowID, "start"), first.Seq)
			if err != nil {
				return "", err
			}
			if start != nil && start.Seq <= log.done.Sequence {
				return fmt.Sprintf(
					"message %d of the inbox, a start of its workflow id that was read, is not purged there yet",
					start.Seq), nil
			}
		}
		unread, err := j.firstFrom(ctx, log.stream, log.filter, log.done.Sequence+1)
		if err != nil {
			return "", err
		}
		if unread != nil && unread.Time.Before(c.at().Add(j.o.Grace)) {
			return fmt.Sprintf(
				"message %d of the %s, which is for its workflow id, is not read yet",
				unread.Seq, log.name), nil
		}
	}
	return "", nil
}

// firstFrom is the first message on a subject from a sequence on; nil if there is none.
func (j *Janitor) firstFrom(
	ctx context.Context, stream, subj string, from uint64,
) (*natsconn.Stored, error) {
	m, err := j.o.Conn.NextBySubject(ctx, stream, subj, from)
	if errors.Is(err, natsconn.ErrNotFound) {
		return nil, nil
	}
	return m, err
}

// recorded tells whether the run above one has anything left to say to it: until its own effects
// are acknowledged, it may repeat the start of a child, which is answered from the child's history.
// A run above that has closed hears no more of its children.
func (k *look) recorded(ctx context.Context, c *candidate) (why string, err error) {
	parent := c.line.Parent
	if parent == nil {
		return "", nil
	}
	j := k.j
	m, err := j.lastRecord(ctx, parent)
	if errors.Is(err, natsconn.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	cp, err := k.checkpoint(ctx, subject.Partition(parent.WorkflowID, j.o.Partitions))
	switch {
	case err != nil:
		return "", err
	case !schemas.HeaderStatus(m.Header.Get(schemas.StatusHeader)).Closed():
		return fmt.Sprintf("its parent, workflow %q run %s, is open",
			parent.WorkflowID, parent.Run), nil
	case m.Seq > cp.Effects:
		return fmt.Sprintf(
			"the owner of its parent, workflow %q run %s, has not written down yet that all it had to do is done",
			parent.WorkflowID, parent.Run), nil
	}
	return "", nil
}
