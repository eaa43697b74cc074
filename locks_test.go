package drover_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

func TestLocks(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{})
		on(s, "locks", func(_ int, q schemas.LocksRequest) any {
			if q.Cursor == "" {
				return schemas.LocksResponse{Locks: []schemas.LockRecord{{Lock: "a", Limit: 1, Next: 3}}, Cursor: "=.a"}
			}
			return schemas.LocksResponse{Locks: []schemas.LockRecord{{Lock: q.Lock, Scope: q.Scope, Limit: 2, Next: 9}}}
		})
		var names []string
		for r, err := range c.Locks(t.Context(), drover.LocksOptions{Lock: "b", Scope: "s"}) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, r.Scope+"/"+r.Lock)
		}
		if d := cmp.Diff([]string{"/a", "s/b"}, names); d != "" {
			t.Fatal(d)
		}
		for _, err := range c.Locks(t.Context(), drover.LocksOptions{Limit: -1}) {
			wantError(t, err, drover.ErrInvalid)
		}

		var got schemas.ExecutionRequest
		on(s, "breakLock", func(_ int, q schemas.ExecutionRequest) any {
			if got = q; q.Lock == "free" {
				return schemas.AckResponse{Error: schemas.Errorf(schemas.CodeConflict, "it does not hold it")}
			}
			return schemas.AckResponse{Run: q.Run}
		})
		if err := c.Run("w", "r").BreakLock(t.Context(), "b", "s", "stuck"); err != nil {
			t.Fatal(err)
		}
		want := schemas.ExecutionRequest{
			V: schemas.Version, WorkflowID: "w", Run: "r", Lock: "b", Scope: "s", Reason: "stuck", RequestID: got.RequestID, Identity: got.Identity,
		}
		if d := cmp.Diff(want, got); d != "" || got.RequestID == "" || got.Identity == "" {
			t.Fatal(d, got)
		}
		wantError(t, c.Run("w", "r").BreakLock(t.Context(), "free", "", ""), drover.ErrConflict)
	})
}
