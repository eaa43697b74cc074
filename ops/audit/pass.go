package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// maxSuspects bounds what one pass looks at a second time; the next pass sees to the others.
const maxSuspects = 10_000

// Pass looks at the namespace once. A cheap pass (full is false) looks at claims, logs and lists; a
// full one also at every open run, every task and every alarm. It repairs what it may, unless the
// options forbid it. It returns an error only if it could not look; what was found by then is not
// reported.
func (a *Auditor) Pass(ctx context.Context, full bool) (*Report, error) {
	began := time.Now()
	now, err := a.serverTime(ctx)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	r := &Report{Namespace: string(a.ns), Time: now, Full: full, Findings: []Finding{}}
	v := newView(a, full)
	first := &suspects{most: a.o.MostOfKind, found: map[string]Finding{}}
	if err := a.look(ctx, v, first); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	r.Runs, r.Tasks, r.Alarms = v.open, len(v.tasks), v.armed
	for kind, n := range first.more {
		r.more(kind, n)
	}
	if len(first.found) > 0 {
		if err := a.confirm(ctx, v, first, r); err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
	}
	if r.unseen = v.unseen; full && len(v.unseen.runs)+len(v.silent) == 0 {
		r.Paused = v.paused
	}
	r.sort()
	r.Took = schemas.Duration(time.Since(began))
	return r, nil
}

// look is the first look.
func (a *Auditor) look(ctx context.Context, v *view, s *suspects) error {
	if err := a.places(ctx, v, s); err != nil {
		return err
	}
	if !v.full {
		return nil
	}
	if err := v.readTasks(ctx); err != nil {
		return err
	}
	if err := v.readLocks(ctx); err != nil {
		return err
	}
	for p := range a.o.Partitions {
		if err := a.lookAtRuns(ctx, v, p, s); err != nil {
			return err
		}
	}
	if err := a.lookAtTasks(ctx, v, s); err != nil {
		return err
	}
	if err := a.lookAtLocks(ctx, v, s); err != nil {
		return err
	}
	v.tellDeciders(s)
	return nil
}

// confirm looks a second time at what is suspicious, and sees to what still is.
func (a *Auditor) confirm(ctx context.Context, v *view, first *suspects, r *Report) error {
	if err := v.markEnds(ctx); err != nil {
		return err
	}
	if err := sleep.For(ctx, a.o.Confirm); err != nil {
		return err
	}
	second := &suspects{most: maxSuspects, found: map[string]Finding{}}
	v.again()
	if err := a.places(ctx, v, second); err != nil {
		return err
	}
	if v.full {
		if err := a.lookAgain(ctx, v, first, second); err != nil {
			return err
		}
	}
	r.Undecided = v.undecided
	confirmed := false
	repaired := map[string]error{} // by workflow id: a run with several findings is repaired once
	for _, key := range slices.Sorted(maps.Keys(first.found)) {
		f := first.found[key] // its numbers are those of all runs
		if _, still := second.found[key]; !still {
			if f.bySelf != "" {
				f.Done, f.Repaired = f.bySelf, true
				r.add(f, a.o.MostOfKind)
			}
			continue
		}
		a.mend(ctx, &f, repaired)
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		r.add(f, a.o.MostOfKind)
		confirmed = confirmed || f.Severity == Fault
	}
	if confirmed { // else the others are hardly more than haste
		r.leave(first.left)
	}
	return nil
}

// lookAgain asks the owners again for the runs that are suspicious.
func (a *Auditor) lookAgain(ctx context.Context, v *view, first, second *suspects) error {
	if err := v.readTasks(ctx); err != nil {
		return err
	}
	if err := v.readLocks(ctx); err != nil {
		return err
	}
	again := map[int][]schemas.Execution{}
	for _, f := range first.found {
		if f.WorkflowID != "" {
			p := a.partitionOf(f.WorkflowID)
			again[p] = append(again[p], schemas.Execution{WorkflowID: f.WorkflowID, Run: f.Run})
		}
	}
	v.forget()
	for p, runs := range again {
		if err := a.judgeAll(ctx, v, p, distinct(runs), second); err != nil {
			return err
		}
	}
	if err := a.lookAtChildren(ctx, v, second); err != nil {
		return err
	}
	if err := a.lookAtLocks(ctx, v, second); err != nil {
		return err
	}
	v.tellDeciders(second)
	for key, f := range first.found {
		if f.remove == nil {
			continue
		}
		there, err := a.stillThere(ctx, f.remove)
		if err != nil {
			return err
		}
		if there && v.notWanted(&f) {
			second.found[key] = f
		}
	}
	return nil
}

// mend does what is safe about a finding that was confirmed.
func (a *Auditor) mend(ctx context.Context, f *Finding, repaired map[string]error) {
	if a.o.ReportOnly {
		return
	}
	var err error
	switch {
	case f.remove != nil:
		if err = a.o.Conn.DeleteMsg(ctx, f.remove.stream, f.remove.seq); errors.Is(err,
			natsconn.ErrNotFound) {
			err = nil // somebody else was faster
		}
		f.Done = fmt.Sprintf("message %d was removed from stream %s", f.remove.seq, f.remove.stream)
	case f.repair != "":
		var seen bool
		if err, seen = repaired[f.repair]; !seen {
			err = a.repair(ctx, f)
			repaired[f.repair] = err
		}
		f.Done = fmt.Sprintf("the open effects of workflow %q were repeated", f.repair)
	default:
		return
	}
	f.Repaired = err == nil
	if err != nil {
		f.Done, f.Failed = "", err.Error()
	}
}

// repair asks the owner of a run to repeat its open effects.
func (a *Auditor) repair(ctx context.Context, f *Finding) error {
	q := &schemas.ExecutionRequest{
		V: schemas.Version, WorkflowID: f.repair, Identity: a.o.Identity, Reason: string(f.Kind),
	}
	_, err := ask(ctx, a, "repair", q,
		func(r *schemas.AckResponse) *schemas.Error { return r.Error })
	return err
}

// stillThere tells whether a message is in its stream, and the same.
func (a *Auditor) stillThere(ctx context.Context, m *message) (bool, error) {
	s, err := a.o.Conn.GetSeq(ctx, m.stream, m.seq)
	switch {
	case errors.Is(err, natsconn.ErrNotFound), errors.Is(err, natsconn.ErrNoStream):
		return false, nil
	case err != nil:
		return false, err
	case s.Subject != m.subject:
		return false, nil
	case m.token != "":
		t, err := parseTask(s.Data)
		return err == nil && t.Token == m.token, nil
	}
	var alarm schemas.Alarm
	return schemas.Unmarshal(s.Data, &alarm) == nil && alarm.Due == m.due, nil
}

// suspects are the findings of one look. Of the notices and warnings of a kind only as many are
// kept as are reported.
type suspects struct {
	most  int
	found map[string]Finding
	count map[Kind]int
	more  map[Kind]int
	left  map[Kind]int // faults that there was no room for
}

func (s *suspects) add(f Finding) {
	key := f.key()
	if _, ok := s.found[key]; ok {
		return
	}
	if s.count == nil {
		s.count, s.more, s.left = map[Kind]int{}, map[Kind]int{}, map[Kind]int{}
	}
	if s.count[f.Kind]++; f.Severity != Fault && s.count[f.Kind] > s.most {
		s.more[f.Kind]++
		return
	}
	if len(s.found) < maxSuspects {
		s.found[key] = f
		return
	}
	if f.Severity == Fault {
		s.left[f.Kind]++
	}
}
