package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/bucketkey"
	"github.com/droverhq/drover/schemas"
)

// withAlwaysOn adds to the sentence about a run of an always-on workflow that has closed when the next one begins, or why none does. What is not
// known then is left out.
func (p *partition) withAlwaysOn(s *execution.State, because string, reply func(because string)) {
	if mode := s.Start.Mode(); !s.Closed() || mode != schemas.ModeAutoStart && mode != schemas.ModeContinuation {
		reply(because)
		return
	}
	wid, run := s.WorkflowID, s.Run
	readAsync(p.b, p.loop, func(ctx context.Context) (*schemas.AlwaysOnRecord, error) {
		return p.b.alwaysOn(ctx, wid)
	}, func(r *schemas.AlwaysOnRecord, err error) {
		if err != nil {
			p.log.WithError(err).WithField("workflow", wid).WithField("run", run).Debug("how the always-on workflow stands is not known")
		}
		reply(because + alwaysBecause(r, p.now()))
	})
}

// alwaysOn is the record of an always-on workflow; nil if it is none any more.
func (b *Broker) alwaysOn(ctx context.Context, wid string) (*schemas.AlwaysOnRecord, error) {
	body, _, err := b.reads.KVGet(ctx, b.ns.BucketSchedules(), "always."+bucketkey.Escape(wid))
	if errors.Is(err, natsconn.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := new(schemas.AlwaysOnRecord)
	return r, schemas.Unmarshal(body, r)
}

// alwaysBecause is the clause about an always-on workflow of which nothing runs.
func alwaysBecause(r *schemas.AlwaysOnRecord, now schemas.Timestamp) string {
	switch {
	case r == nil || r.Open:
		return ""
	case r.Stopped:
		return fmt.Sprintf("; the always-on workflow was stopped by %s%s: drover always-on start %s", r.StoppedBy, reason(r.Reason), r.AlwaysOn.Start.WorkflowID)
	case r.AlwaysOn.Restart == schemas.RestartOnFailure && (r.Status == schemas.StatusCompleted || r.Status == schemas.StatusCanceled):
		return fmt.Sprintf("; the always-on workflow begins again only after failures, or with: drover always-on start %s", r.AlwaysOn.Start.WorkflowID)
	case r.NotBefore > now && r.Failures == 0:
		return fmt.Sprintf("; the always-on workflow is started again at %s", r.NotBefore)
	case r.NotBefore > now:
		failing := ""
		if r.Failures >= schemas.FailingAfter {
			failing = ", it is failing"
		}
		if r.Refusal != "" {
			failing += "; the last start was refused: " + r.Refusal
		}
		return fmt.Sprintf("; the always-on workflow has failed %s in a row%s; it is started again at %s, or at once with: drover always-on start %s",
			count(r.Failures, "time", "times"), failing, r.NotBefore, r.AlwaysOn.Start.WorkflowID)
	}
	return ""
}
