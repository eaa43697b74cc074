package schedules

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// The pause before somebody is asked again how a run has ended.
const firstAskAgain, lastAskAgain = time.Second, 30 * time.Second

// watchAll waits for the ends of all runs that are open, and of no other. The caller is in the
// entry.
func (t *turn) watchAll(e *entry) {
	open := map[string]bool{}
	for _, s := range e.slots.Running {
		open[s.Run] = true
		if e.watched[s.Run] != nil || t.ctx.Err() != nil {
			continue
		}
		ctx, stop := context.WithCancel(t.ctx)
		e.watched[s.Run] = stop
		t.work.Go(func() {
			defer stop()
			t.watch(ctx, e, s)
		})
	}
	for run, stop := range e.watched {
		if !open[run] {
			stop()
			delete(e.watched, run)
			delete(e.asked, "cancel "+run)
			delete(e.asked, "terminate "+run)
		}
	}
}

// watch waits for the end of the chain of a run, and writes what became of its slot.
func (t *turn) watch(ctx context.Context, e *entry, s ops.ScheduleSlot) {
	for wait := firstAskAgain; ; wait = min(2*wait, lastAskAgain) {
		out, err := t.engine.Wait(ctx, s.WorkflowID, s.Run)
		switch {
		case err == nil:
		case errors.Is(err, drover.ErrNotFound):
			out, err = &drover.Outcome{}, nil
		}
		if err == nil {
			err = t.ended(e, s.Run, out)
		}
		if err == nil {
			t.kick(e)
			return
		}
		if ctx.Err() != nil {
			return
		}
		t.log.WithField("err", err).WithField("schedule", e.id).
			Debug("it is not known how a run has ended; asking again")
		if sleep.For(ctx, wait) != nil {
			return
		}
	}
}

// ended settles the slot of a run. A failure pauses the schedule before, if it is to.
func (t *turn) ended(e *entry, run string, out *drover.Outcome) error {
	if err := e.enter(t.ctx); err != nil {
		return err
	}
	defer e.leave()
	if ok, err := t.fresh(e); !ok {
		return err
	}
	b := e.slots.clone()
	if !b.ended(run, out.Status, out.Reason, out.Result, t.stamp()) {
		return nil
	}
	failed := out.Status == schemas.StatusFailed || out.Status == schemas.StatusTimedOut
	if failed && e.rec.Schedule.PauseOnFailure && !e.rec.Schedule.Paused {
		r := *e.rec
		r.Schedule.Paused, r.Schedule.PausedUntil = true, 0
		r.Schedule.Note = cut(fmt.Sprintf("run %s %s: %s", run, out.Status, out.Reason), mostNote)
		if err := t.saveRecord(e, &r); err != nil {
			return err
		}
		t.noteChange(ops.OperationSchedulePaused, e.id, "", r.Schedule.Note, 0)
	}
	if err := t.save(e, b); err != nil {
		return err
	}
	t.watchAll(e)
	return nil
}

// endOthers asks runs to end for which a slot waits. A request that is lost is repeated by the next
// master, or when it has failed. The caller is in the entry.
func (t *turn) endOthers(e *entry) {
	runs, terminate := e.slots.toEnd()
	for _, s := range runs {
		how := "cancel " + s.Run
		if terminate {
			how = "terminate " + s.Run
		}
		if e.asked[how] {
			continue
		}
		e.asked[how] = true
		q := &schemas.ExecutionRequest{
			WorkflowID: s.WorkflowID, Run: s.Run, Identity: "schedule " + e.id,
			Reason: "a later slot of schedule " + e.id + " takes its place",
		}
		t.work.Go(func() { t.endOther(e, q, terminate, how) })
	}
}

func (t *turn) endOther(e *entry, q *schemas.ExecutionRequest, terminate bool, how string) {
	for wait := firstAskAgain; ; wait = min(2*wait, lastAskAgain) {
		err := t.engine.End(t.ctx, q, terminate)
		if _, final := refusedForGood(err); err == nil || final || t.ctx.Err() != nil {
			return
		}
		t.log.WithField("err", err).WithField("schedule", e.id).WithField("run", q.Run).
			Debug(how + " has failed; trying again")
		if sleep.For(t.ctx, wait) != nil {
			return
		}
	}
}

// cut shortens a text to so many bytes, by whole characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most - len("…")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
