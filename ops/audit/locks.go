package audit

import (
	"context"
	"fmt"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// readLocks reads which locks are in use, as the brokers see the bucket. If nobody answers, nothing
// is said about locks in this look: that nobody serves the namespace is told elsewhere.
func (v *view) readLocks(ctx context.Context) error {
	v.locks = nil
	read := map[string]*schemas.LockRecord{}
	q := &schemas.LocksRequest{V: schemas.Version}
	for {
		page, err := ask(ctx, v.a, "locks", q,
			func(r *schemas.LocksResponse) *schemas.Error { return r.Error })
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			v.unseen.locks = true
			return nil
		}
		for i := range page.Locks {
			read[schemas.LockKey(page.Locks[i].Scope, page.Locks[i].Lock)] = &page.Locks[i]
		}
		if q.Cursor = page.Cursor; q.Cursor == "" {
			v.locks = read
			return nil
		}
	}
}

// lookAtLocks finds those who hold a lock or wait for it although they have closed, let go, or
// never asked.
func (a *Auditor) lookAtLocks(ctx context.Context, v *view, s *suspects) error {
	// by workflow id: the locks in which it has a place
	places := map[string][]*schemas.LockRecord{}
	byPartition := map[int][]schemas.Execution{}
	for _, r := range v.locks {
		for _, p := range slices.Concat(r.Holders, r.Waiters) {
			if places[p.WorkflowID] == nil {
				n := a.partitionOf(p.WorkflowID)
				byPartition[n] = append(byPartition[n], schemas.Execution{WorkflowID: p.WorkflowID})
			}
			places[p.WorkflowID] = append(places[p.WorkflowID], r)
		}
	}
	for n, of := range byPartition {
		err := a.askAll(ctx, v, n, distinct(of),
			func(_ *schemas.AuditResponse, asked schemas.Execution, run *schemas.AuditRun) error {
				if run.Busy || run.Unreadable != "" {
					return nil
				}
				for _, r := range places[asked.WorkflowID] {
					a.judgeLock(n, r, run, s)
				}
				return nil
			})
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *Auditor) judgeLock(
	partition int, r *schemas.LockRecord, run *schemas.AuditRun, s *suspects,
) {
	for _, p := range slices.Concat(r.Holders, r.Waiters) {
		if p.WorkflowID != run.WorkflowID || slices.ContainsFunc(run.Locks,
			func(l schemas.OpenLock) bool { return ofPlace(&l, r, &p) }) {
			continue
		}
		does, is := "waits for", "does not ask for it"
		if p.Fence != 0 {
			does = "holds"
		}
		if run.Status.Closed() {
			is = fmt.Sprintf("is closed (%s)", run.Status)
		}
		s.add(Finding{
			Kind: KindLockStale, Severity: Fault, WorkflowID: p.WorkflowID, Partition: &partition,
			Since: p.Since, repair: p.WorkflowID,
			detail: fmt.Sprint(schemas.LockKey(r.Scope, r.Lock), " ", p.Run, " ", p.EventID),
			Text: fmt.Sprintf("workflow %q %s lock %q%s by its key since %s, and %s",
				p.WorkflowID, does, r.Lock, inScope(r.Scope), p.Since, is),
		})
	}
}

// judgeLocks compares the locks of an open run with their keys.
func (a *Auditor) judgeLocks(v *view, r *schemas.AuditRun, f Finding, s *suspects) {
	if v.locks == nil {
		return
	}
	for _, l := range r.Locks {
		record := v.locks[schemas.LockKey(l.Scope, l.Lock)]
		mine := func(p schemas.LockPlace) bool { return p.WorkflowID == r.WorkflowID && ofPlace(&l, record, &p) }
		if l.Holder != nil || record != nil && (slices.ContainsFunc(record.Holders, mine) ||
			slices.ContainsFunc(record.Waiters, mine)) {
			continue
		}
		does := "waits for"
		if l.Fence != 0 {
			does = "holds"
		}
		f.Kind, f.Severity, f.Since, f.repair = KindLockMissing, Fault, l.Since, r.WorkflowID
		f.detail = schemas.LockKey(l.Scope, l.Lock)
		f.Text = fmt.Sprintf("workflow %q %s lock %q%s since %s, and has no place in its key",
			r.WorkflowID, does, l.Lock, inScope(l.Scope), l.Since)
		s.add(f)
	}
}

// ofPlace tells whether a lock of a run is the place in a key.
func ofPlace(l *schemas.OpenLock, r *schemas.LockRecord, p *schemas.LockPlace) bool {
	return l.Holder == nil && l.Lock == r.Lock && l.Scope == r.Scope && l.Run == p.Run &&
		l.EventID == p.EventID
}

func inScope(scope string) string {
	if scope == "" {
		return ""
	}
	return fmt.Sprintf(" in scope %q", scope)
}
