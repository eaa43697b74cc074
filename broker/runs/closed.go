package runs

import (
	"context"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// Closed is what the last record of a run tells of its end: id, status and closing event. Without
// an id of a run it is the latest. It is nil if the run has not ended, or has continued as new.
// alone is as for [Reader.LastRecord].
func (r *Reader) Closed(
	ctx context.Context, partition int, wid, run string, alone bool,
) (*execution.State, error) {
	subj := r.Namespace.HistoryOfWorkflow(partition, wid)
	if run != "" {
		subj = r.Namespace.History(partition, wid, run)
	}
	_, last, err := r.Newest(ctx, partition, subj, alone)
	if err != nil || last == nil || len(last.Events) == 0 {
		return nil, err
	}
	end := last.Events[len(last.Events)-1]
	status, closes := schemas.StatusOf(end.Type())
	if !closes || status == schemas.StatusContinuedAsNew { // its follower may be missing
		return nil, nil
	}
	return &execution.State{Run: last.Run, Status: status, Close: &end}, nil
}
