package runs

import (
	"context"
	"errors"
	"sync"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

const (
	// walkWindow is how many records are looked at together, and walkReads how many questions about
	// them are open at a time.
	walkWindow = 512
	walkReads  = 8
)

// walker shows the executions of a partition, in the order of their last records.
//
// It reads the headers of all records in their order. To ask for the last record of each subject
// looks cheaper, but the server answers that in one piece: at 1,000,000 finished runs a list had no
// answer within its time, and everybody else waited.
type walker struct {
	r         *Reader
	q         *schemas.ListRequest
	partition int
	fn        func(partition int, seq uint64, i *schemas.ExecutionInfo) error

	window []natsconn.Stored
	place  map[string]int // in window, by subject: only the last record of each is kept
	read   int            // records since the window began

	end   uint64          // the last record that the walk comes to
	moved map[string]bool // subjects of runs that were shown by a record after the end
}

// walk shows fn each execution that matches, from a place in a partition on. Now and then it calls
// fn without one: all whose last record stands before seq were shown. An error of fn ends it and is
// returned.
func (r *Reader) walk(
	ctx context.Context, q *schemas.ListRequest, partition int, from uint64,
	fn func(partition int, seq uint64, i *schemas.ExecutionInfo) error,
) error {
	for ; partition < r.Partitions; partition, from = partition+1, 1 {
		w := walker{r: r, q: q, partition: partition, fn: fn}
		var err error
		switch {
		case q.WorkflowID == "":
			err = w.records(ctx, from)
		case subject.Partition(q.WorkflowID, r.Partitions) == partition:
			err = w.runs(ctx, from)
		}
		if err == nil && partition+1 < r.Partitions {
			err = fn(partition+1, 1, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// records walks all runs from a record on.
func (w *walker) records(ctx context.Context, from uint64) error {
	w.place, w.moved = make(map[string]int), make(map[string]bool)
	var err error
	if w.end, err = w.r.Conn.StreamLastSeq(ctx, w.r.Namespace.StreamHistory(w.partition)); err !=
		nil || w.end < from {
		return err
	}
	err = w.r.Conn.Scan(
		ctx,
		w.r.Namespace.StreamHistory(w.partition),
		natsconn.ReadOptions{StartSeq: from, EndSeq: w.end, HeadersOnly: true},
		func(m natsconn.Stored) error {
			if !IsRecord(&m) {
				return nil
			}
			if i, known := w.place[m.Subject]; known {
				w.window[i].Subject = ""
			}
			w.place[m.Subject] = len(w.window)
			w.window = append(w.window, m)
			if w.read++; w.read < walkWindow {
				return nil
			}
			return w.show(ctx, m.Seq+1)
		},
	)
	if err != nil {
		return err
	}
	return w.show(ctx, 0)
}

// show shows what is in the window: of each run the last record, if none has come after the window.
func (w *walker) show(ctx context.Context, next uint64) error {
	type line struct {
		natsconn.Stored
		info  schemas.ExecutionInfo
		last  bool
		moved bool
	}
	var lines []*line
	for _, m := range w.window {
		if m.Subject == "" {
			continue
		}
		if i, ok := w.info(m); ok {
			// Nothing follows the end of a run, and the last window comes to the end of the walk.
			// To ask brings the whole record.
			lines = append(lines, &line{Stored: m, info: i, last: next == 0 || i.Status.Closed()})
		}
	}
	w.window, w.read = w.window[:0], 0
	clear(w.place)
	var reading sync.WaitGroup
	errs := make([]error, walkReads)
	for n := range walkReads {
		reading.Go(func() {
			for i := n; i < len(lines) && errs[n] == nil; i += walkReads {
				if !lines[i].last {
					var newest *natsconn.Stored
					if newest, errs[n] = w.newest(ctx, lines[i].Stored); newest == nil {
						continue
					}
					switch l := lines[i]; {
					case newest.Seq <= l.Seq:
						l.last = true
					case newest.Seq > w.end && IsRecord(newest): // the walk does not come to it
						l.info, l.last = w.info(*newest)
						l.moved = true
					}
				}
			}
		})
	}
	reading.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, l := range lines {
		if l.last && !w.moved[l.Subject] {
			if l.moved {
				w.moved[l.Subject] = true
			}
			if err := w.fn(w.partition, l.Seq, &l.info); err != nil {
				return err
			}
		}
	}
	if next == 0 {
		return nil
	}
	return w.fn(w.partition, next, nil)
}

// newest reads the last record of a run; nil if it was deleted meanwhile.
func (w *walker) newest(ctx context.Context, m natsconn.Stored) (*natsconn.Stored, error) {
	get := w.r.Conn.LastBySubject
	if w.r.Conn.NATS().ConnectedClusterName() == "" {
		get = w.r.Conn.LastBySubjectDirect // nobody else has a copy
	}
	last, err := get(ctx, w.r.Namespace.StreamHistory(w.partition), m.Subject)
	if errors.Is(err, natsconn.ErrNotFound) {
		return nil, nil
	}
	return last, err
}

// runs walks the runs of one workflow id.
func (w *walker) runs(ctx context.Context, from uint64) error {
	options := natsconn.ReadOptions{
		FilterSubjects: []string{
			w.r.Namespace.HistoryOfWorkflow(w.partition, w.q.WorkflowID),
		}, LastPerSubject: true, HeadersOnly: true,
	}
	return w.r.Conn.Scan(
		ctx,
		w.r.Namespace.StreamHistory(w.partition),
		options,
		func(m natsconn.Stored) error {
			if m.Seq < from {
				return nil
			}
			if i, ok := w.info(m); ok {
				return w.fn(w.partition, m.Seq, &i)
			}
			return w.fn(w.partition, m.Seq+1, nil)
		},
	)
}

// info reads what a list shows of a run, and tells whether it is asked for.
func (w *walker) info(m natsconn.Stored) (i schemas.ExecutionInfo, ok bool) {
	i, err := InfoFrom(m)
	if err != nil {
		w.r.Log.WithError(err).
			WithField("subject", m.Subject).
			Warn("a record has no readable headers")
		return i, false
	}
	return i, matches(w.q, &i)
}
