package flows_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider/flow"
	"github.com/droverhq/drover/schemas"
)

// A0-17: one run reads, adds and writes. The first one finds nothing, which the locked form takes for 0.
func TestIncrement(t *testing.T) {
	also := map[string]string{"show": "steps: ['return ${state.count}']"}
	live(t, nil, []string{"increment", "locked-increment"}, also, http.NotFoundHandler(), func(t *testing.T, h *house) {
		if out := h.Wait(h.start("increment", "too-early", nil)); out.Status != schemas.StatusFailed || !strings.Contains(string(out.Details), "entity.sensor.count") {
			t.Errorf("without a count: got %+v %s, want a failure that names the key", out, out.Details)
		}
		for i, typ := range []string{"locked-increment", "increment", "increment"} {
			if out := h.Wait(h.start(typ, fmt.Sprint("run-", i), nil)); out.Status != schemas.StatusCompleted {
				t.Errorf("%s: got %+v %s, want completed", typ, out, out.Details)
			}
			h.completes(h.start("show", fmt.Sprint("show-", i), nil), fmt.Sprint(i+1))
		}
	})
}

// A0-13: twenty runs at a time under the lock add twenty.
func TestLockedIncrement(t *testing.T) {
	also := map[string]string{"show": "steps: ['return ${state.count}']"}
	live(t, nil, []string{"locked-increment"}, also, http.NotFoundHandler(), func(t *testing.T, h *house) {
		var runs []*drover.Run
		for i := range 20 {
			runs = append(runs, h.start("locked-increment", fmt.Sprint("run-", i), nil))
		}
		for _, run := range runs {
			if out := h.Wait(run); out.Status != schemas.StatusCompleted {
				t.Errorf("%s: got %+v %s, want completed", run.ID, out, out.Details)
			}
		}
		h.completes(h.start("show", "show", nil), "20")
	})
}

// A0-6, A0-17: somebody holds the lock. If it becomes free within a minute it is taken then, else by force; both times the block
// within enters, because the run around it holds the lock, and the lock is free after it.
func TestTryLock(t *testing.T) {
	for name, tc := range map[string]struct {
		held, least, most time.Duration
		forced            int
	}{
		"free":     {0, 0, 5 * time.Second, 0},
		"soon":     {3 * time.Second, 2 * time.Second, 8 * time.Second, 0},
		"too late": {time.Hour, time.Minute, 70 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, text, err := read("try-lock")
			if err != nil {
				t.Fatal(err)
			}
			also := map[string]string{
				"hold":     fmt.Sprintf("lock: checking-first-example\nsteps: [sleep %ds]\n", int(tc.held.Seconds())),
				"try-lock": strings.Replace(string(text), "backoff 10ms", "backoff "+between, 1),
			}
			live(t, nil, nil, also, http.NotFoundHandler(), func(t *testing.T, h *house) {
				var holder *drover.Run
				if tc.held > 0 {
					holder = h.start("hold", "holder", nil)
					h.Sleep(time.Second)
				}
				began := time.Now()
				run := h.start("try-lock", "try", nil)
				out := h.Wait(run)
				if took := time.Since(began); out.Status != schemas.StatusCompleted || took < tc.least || took > tc.most {
					t.Errorf("got %+v %s after %v, want completed after %v to %v", out, out.Details, took, tc.least, tc.most)
				}
				if got := strings.Count(h.logged("try"), "force-clearing it"); got != tc.forced {
					t.Errorf("the lock was cleared by force %d times, want %d", got, tc.forced)
				}
				if holder != nil {
					if out := h.Wait(holder); out.Status != schemas.StatusCompleted {
						t.Errorf("the holder: got %+v, want completed", out)
					}
				}
				if !strings.Contains(h.loggedByParts("try"), "we got the lock") {
					t.Error("the block that needs the lock has not run")
				}
				h.Sleep(time.Second) // the lock's own record follows the history
				for l, err := range h.Client.Locks(t.Context(), drover.LocksOptions{}) {
					t.Errorf("%+v (%v) is held at the end, want none", l, err)
				}
			})
		})
	}
}

// logged is what a run has written into its log, one a line.
func (h *house) logged(id string) string {
	h.t.Helper()
	var all strings.Builder
	for _, e := range h.History(id) {
		if a, ok := e.Attributes.(*schemas.Marker); ok && a.MarkerName == flow.MarkerLog {
			fmt.Fprintln(&all, string(a.Details))
		}
	}
	return all.String()
}

// loggedByParts is what the runs of its own blocks have written.
func (h *house) loggedByParts(id string) string {
	h.t.Helper()
	var all strings.Builder
	for _, e := range h.History(id) {
		if a, ok := e.Attributes.(*schemas.ChildScheduled); ok {
			all.WriteString(h.logged(a.WorkflowID))
		}
	}
	return all.String()
}
