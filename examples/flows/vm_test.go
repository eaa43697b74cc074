package flows_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

// office approves requests and has machines. It answers what is under its words, in turn, and the last answer for ever; an empty one
// breaks the connection.
type office struct {
	mu      sync.Mutex
	answers map[string][]string
	called  []string
}

func (o *office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.called = append(o.called, r.URL.RequestURI())
	all := o.answers[r.URL.Path]
	if len(all) > 1 {
		o.answers[r.URL.Path] = all[1:]
	}
	if len(all) == 0 || all[0] == "" {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, all[0])
}

const (
	asks      = "/request/infrastructure/vm"
	checks    = "/check"
	provides  = "/provision/vm"
	asked     = `{"request_id": 7}`
	pending   = `{"completed": false}`
	approved  = `{"completed": true, "approved": true}`
	denied    = `{"completed": true, "approved": false, "details": "too dear"}`
	provided  = `{"provision_id": 8}`
	delivered = `{"completed": true, "id": "vm-1", "ip_address": "10.0.0.1"}`
)

// A0-10, A0-15, A0-17: a machine is asked for, approved, provisioned once, and described by state keys.
func TestVM(t *testing.T) {
	for name, tc := range map[string]struct {
		answers map[string][]string
		calls   []string
		failure string // empty: it completes
		takes   time.Duration
	}{
		"approved": {
			map[string][]string{asks: {asked}, checks: {pending, pending, approved, pending, delivered}, provides: {provided}},
			[]string{asks, checks + "?request_id=7", checks + "?request_id=7", checks + "?request_id=7", provides, checks + "?provision_id=8", checks + "?provision_id=8"},
			"", 40 * time.Second,
		},
		"denied": {
			map[string][]string{asks: {asked}, checks: {denied}},
			[]string{asks, checks + "?request_id=7"},
			"denied by approvals system: too dear", 0,
		},
		"the approvals break once": { // the start is a point still
			map[string][]string{asks: {"", asked}, checks: {approved, delivered}, provides: {provided}},
			[]string{asks, asks, checks + "?request_id=7", provides, checks + "?provision_id=8"},
			"", 0,
		},
		"the provisioner breaks": { // nobody knows whether there is a machine now, so nobody asks twice
			map[string][]string{asks: {asked}, checks: {approved}, provides: {""}},
			[]string{asks, checks + "?request_id=7", provides},
			"no replay point", 0,
		},
		"the check of the machine breaks": { // after the request a replay does no harm
			map[string][]string{asks: {asked}, checks: {approved, "", delivered}, provides: {provided}},
			[]string{asks, checks + "?request_id=7", provides, checks + "?provision_id=8", checks + "?provision_id=8"},
			"", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			site := &office{answers: tc.answers}
			also := map[string]string{"show": "steps: ['return ${state.vm_id} ${state.ip_address}']"}
			live(t, nil, []string{"vm"}, also, site, func(t *testing.T, h *house) {
				began := time.Now()
				out := h.Wait(h.start("vm", "vm", nil))
				if took := time.Since(began).Truncate(5 * time.Second); took != tc.takes {
					t.Errorf("it has taken %v, want %v", took, tc.takes)
				}
				switch {
				case tc.failure != "":
					if out.Status != schemas.StatusFailed || !strings.Contains(string(out.Details), tc.failure) {
						t.Errorf("got %+v %s, want a failure with %q", out, out.Details, tc.failure)
					}
				case out.Status != schemas.StatusCompleted:
					t.Errorf("got %+v %s, want completed", out, out.Details)
				default:
					h.completes(h.start("show", "show", nil), `"vm-1 10.0.0.1"`)
				}
				said := h.said("vm")
				if got := strings.Contains(said, `"retention":"parent"`); got != (tc.failure == "") || !strings.Contains(said, "max(context, 6h)") {
					t.Errorf("how long the run is kept is not told as it should be:\n%s", said)
				}
			})
			site.mu.Lock()
			defer site.mu.Unlock()
			if diff := cmp.Diff(tc.calls, site.called); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}
