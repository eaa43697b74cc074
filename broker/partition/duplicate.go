package partition

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// A worker whose outcome was stored, and who has heard nothing of it, since the answer went down
// with the owner or the connection, or the owner was too busy, tells it again by way of the inbox
// (ADR 0021). There it finds its activity over. It is no dead letter: nothing is lost with it.

// buryUntold parks what found no place, but for an outcome that the history has.
func (p *Partition) buryUntold(r *actor.Run, e *actor.Message, f execution.Dead) {
	m, reported := e.Event.(execution.Report)
	if !reported ||
		f.Reason != execution.DeadClosedActivity && f.Reason != execution.DeadStaleToken {
		p.bury(e, f.Reason, f.Details)
		return
	}
	e.Completion.Retain()
	p.buryIfUntold(r.WorkflowID, e, m, f)
}

// buryIfUntold holds the message's completion until it is known whether the history has it: if it
// cannot be read now it is read again.
func (p *Partition) buryIfUntold(
	wid string, e *actor.Message, m execution.Report, f execution.Dead,
) {
	alone := p.singleReplica()
	env.ReadAsync(p.Env, p.Loop, func(ctx context.Context) (bool, error) {
		return knownOutcome(p.Env, ctx, p.Partition, wid, m.Report, alone)
	}, func(known bool, err error) {
		switch {
		case errors.Is(err, runs.ErrDamaged):
			p.Log.WithError(err).WithField("subject", e.Subject).
				Warn("whether the history has an outcome that came late cannot be told")
		case err != nil:
			p.Loop.After(env.LoadRetry, func() { p.buryIfUntold(wid, e, m, f) })
			return
		}
		if !known {
			p.bury(e, f.Reason, f.Details)
		}
		e.Completion.Release()
	})
}

// knownOutcome tells whether one of the last records of a run has this very outcome of this very
// attempt. An older one is not looked for: who tells it again has waited for seconds, and nobody
// shall make an owner read long histories. alone is as for [runs.Reader.LastRecord].
func knownOutcome(
	b *env.Env, ctx context.Context, partition int, wid string, m *schemas.Report, alone bool,
) (bool, error) {
	run, scheduled, attempt, err := execution.ParseToken(m.Token)
	if err != nil || schemas.ValidateID("run", run) != nil { // a worker may say anything
		return false, nil
	}
	last, newest, err := b.Histories.Newest(ctx, partition, b.NS.History(partition, wid, run),
		alone)
	if err != nil || newest == nil {
		return false, err
	}
	var ends []int64
	for _, r := range b.Histories.Backwards(ctx, partition, last, newest) {
		for _, e := range slices.Backward(r.Events) {
			began, ok := e.Attributes.(*schemas.ActivityStarted)
			if ok && began.ScheduledEventID == scheduled && began.Attempt == attempt {
				return began.Identity == m.Identity && slices.Contains(ends, e.ID), nil
			}
			if id := endSaying(e, scheduled, m); id != 0 {
				ends = append(ends, id)
			}
		}
		if r.First <= scheduled {
			break
		}
	}
	return false, nil
}

// endSaying is the id of the event that began the attempt that ends with e, if e says what the
// outcome does; else 0.
func endSaying(e schemas.Event, scheduled int64, m *schemas.Report) int64 {
	same := false
	var of, began int64
	switch a := e.Attributes.(type) {
	case *schemas.ActivitySuccess:
		of, began = a.ScheduledEventID, a.StartedEventID
		same = m.Kind == schemas.ReportSuccess && bytes.Equal(a.Result, m.Result)
	case *schemas.ActivityFailed:
		of, began = a.ScheduledEventID, a.StartedEventID
		same = bytes.Equal(a.Details, m.Details) &&
			(m.Kind == schemas.ReportFailed && a.Final == m.Final &&
				a.Reason == cmp.Or(m.Reason, schemas.ReasonFailed) ||
				m.Kind == schemas.ReportCanceled && a.Reason == string(schemas.ReportCanceled))
	case *schemas.ActivityCanceled:
		of, began = a.ScheduledEventID, a.StartedEventID
		same = m.Kind == schemas.ReportCanceled && bytes.Equal(a.Details, m.Details)
	case *schemas.ActivityRetryScheduled:
		of, began = a.ScheduledEventID, a.StartedEventID
		same = m.Kind == schemas.ReportFailed && !m.Final &&
			a.Cause == cmp.Or(m.Reason, schemas.ReasonFailed) && bytes.Equal(a.Details, m.Details)
	}
	if !same || of != scheduled {
		return 0
	}
	return began
}
