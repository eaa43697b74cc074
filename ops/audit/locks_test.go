package audit_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/ops/audit"
	"github.com/droverhq/drover/schemas"
)

// A key that was deleted by hand while nobody owned the partition: the holder gets its place back with its fence, and who waits
// stands in line again.
func TestLostPlacesAreRepaired(t *testing.T) {
	virtually(t, 1, func(t *testing.T, h *house) {
		h.master()
		h.timers("t")
		stop := h.broker("b1")
		h.decider("order", upTo("Signal", `[{"type":"AcquireLock","attributes":{"lock":"L","scope":"s"}}]`))
		h.start("w1", "order")
		h.await("w1", "LockAcquired")
		h.start("w2", "order")
		h.await("w2", "LockRequested")
		time.Sleep(5 * time.Second)
		h.wantKinds(h.pass(h.auditor()), "waits-for-nothing")
		stop()
		_, rev, err := h.conn.KVGet(t.Context(), ns.BucketLocks(), "s.L")
		if err == nil {
			err = h.conn.KVDelete(t.Context(), ns.BucketLocks(), "s.L", rev)
		}
		if err != nil {
			t.Fatal(err)
		}
		h.broker("b2")
		time.Sleep(5 * time.Second)
		h.wantKinds(h.pass(h.auditor()), "lock-missing+", "waits-for-nothing")
		time.Sleep(5 * time.Second)
		h.wantKinds(h.pass(h.auditor()), "waits-for-nothing")
		for _, id := range []string{"w1", "w2"} {
			h.await(id, "LockAcquired")
			h.signal(id, "go")
			h.completes(id)
		}
	})
}

// An owner that has missed the end of a holder is told to look again. It is played here, since a broker heals at once.
func TestClosedHoldersAreFound(t *testing.T) {
	virtually(t, 1, func(t *testing.T, h *house) {
		place := func(wid string, fence uint64) schemas.LockPlace {
			return schemas.LockPlace{WorkflowID: wid, Run: wid + "-run", EventID: 5, Fence: fence, Since: 1}
		}
		record := schemas.LockRecord{
			Lock: "L", Limit: 2, Next: 9, Holders: []schemas.LockPlace{place("closed", 7), place("open", 8)},
			Waiters: []schemas.LockPlace{place("busy", 0), place("never", 0)},
		}
		var mu sync.Mutex
		var repaired []string
		answer := func(verb string, fn func(natsconn.Msg) any) {
			_, err := h.conn.Subscribe(ns.API(verb), "", func(m natsconn.Msg) {
				body, err := schemas.MarshalJSON(fn(m))
				if err == nil {
					err = m.Respond(nil, body)
				}
				if err != nil {
					t.Error(err)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		answer("locks", func(natsconn.Msg) any { return &schemas.LocksResponse{Locks: []schemas.LockRecord{record}} })
		answer("lists", func(natsconn.Msg) any { return &schemas.TaskListsResponse{} })
		answer("audit", func(m natsconn.Msg) any {
			var q schemas.AuditRequest
			if err := schemas.Unmarshal(m.Data, &q); err != nil {
				t.Error(err)
			}
			a := &schemas.AuditResponse{Owner: "played"}
			for _, wid := range q.Workflows {
				r := schemas.AuditRun{WorkflowID: wid, Run: wid + "-run", Status: schemas.StatusOpen, Busy: wid == "busy"}
				switch wid {
				case "closed":
					r.Status = schemas.StatusCompleted
				case "open":
					r.Locks = []schemas.OpenLock{{Lock: "L", Fence: 8, Run: "open-run", EventID: 5}}
				case "never":
					r.Locks = []schemas.OpenLock{{Lock: "L", Run: "never-run", EventID: 6}} // of another request
				}
				a.Runs = append(a.Runs, r)
			}
			return a
		})
		answer("repair", func(m natsconn.Msg) any {
			var q schemas.ExecutionRequest
			if err := schemas.Unmarshal(m.Data, &q); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			repaired = append(repaired, q.WorkflowID)
			return &schemas.AckResponse{}
		})
		found := map[string]audit.Finding{}
		for _, f := range h.pass(h.auditor()).Findings {
			if f.Kind == audit.KindLockStale {
				found[f.WorkflowID] = f
			}
		}
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(repaired)
		if len(found) != 2 || !found["closed"].Repaired || !found["never"].Repaired || !slices.Equal(slices.Compact(repaired), []string{"closed", "never"}) {
			t.Fatalf("found %+v, repaired %v; want the closed one and the one that never asked", found, repaired)
		}
		const want = `workflow "closed" holds lock "L" by its key since 1970-01-01T00:00:00.000000001Z, and is closed (completed)`
		if got := found["closed"].Text; got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}
