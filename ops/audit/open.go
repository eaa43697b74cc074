package audit

import (
	"context"
	"fmt"
	"iter"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/openruns"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// mostOpen is how many open runs of a partition are remembered from one pass to the next.
const mostOpen = 100_000

// history is what the passes have read of the history of a partition.
type history struct {
	end  uint64        // the last record
	runs openruns.Runs // as they were after it
}

// openRuns are the runs of a partition that are open by the headers of their last records, in the
// order of these, and how many.
//
// Each record is read once, in its order, and later passes read what has come since. To ask for the
// last record of each run alone took 640 MB of memory and seconds of everybody else's time at each
// pass, for a million finished runs.
func (a *Auditor) openRuns(
	ctx context.Context, p int,
) (open iter.Seq[schemas.Execution], n int, err error) {
	h := a.histories[p]
	stream := a.ns.StreamHistory(p)
	last, err := a.o.Conn.StreamLastSeq(ctx, stream)
	if err != nil {
		return nil, 0, fmt.Errorf("read the open runs of partition %d: %w", p, err)
	}
	if h == nil || last < h.end { // a stream that has lost its end is another one
		h = &history{}
	}
	delete(a.histories, p) // half a pass says nothing
	// Without a filter, which would cost more than the fences that it leaves out.
	options := natsconn.ReadOptions{
		StartSeq: h.end + 1, HeadersOnly: true, BytesPerSecond: natsconn.LeisurelyHeaders,
	}
	err = a.o.Conn.Scan(ctx, stream, options, func(s natsconn.Stored) error {
		h.end = s.Seq
		return h.runs.Note(s.Seq, s.Subject, s.Header.Get(schemas.StatusHeader))
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read the open runs of partition %d: %w", p, err)
	}
	if h.runs.Len() <= mostOpen {
		a.histories[p] = h
	}
	return func(yield func(schemas.Execution) bool) {
		for subj := range h.runs.Open() {
			if _, wid, run, err := subject.ParseHistory(subj); err == nil &&
				!yield(schemas.Execution{WorkflowID: wid, Run: run}) {
				return
			}
		}
	}, h.runs.OpenLen(), nil
}
