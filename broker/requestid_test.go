package broker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/schemas"
)

// Request ids are remembered by the run and its successors, so long ones would fill their records: the signals of strangers that
// bear one are parked, and the partition goes on.
func TestLongRequestIDs(t *testing.T) { // S1-21, P-4
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", renewing)
		f.start(startO)
		const n = 40
		for i := range n {
			m := nats.NewMsg("drover.default.signal.o.s")
			m.Header.Set(schemas.RequestIDHeader, strings.Repeat(string(rune('A'+i)), 60_000))
			if _, err := f.js.PublishMsg(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if got := f.counts(); got["invalid"] != n {
			t.Fatalf("dead letters: got %v, want %d that are invalid", got, n)
		}
		longest := strings.Repeat("q", schemas.MaxIDLen)
		for verb, fields := range map[string]string{"signal": `"name":"s"`, "cancel": `"reason":"r"`, "start": `"type":"order","idConflictPolicy":"USE_EXISTING"`} {
			for id, refused := range map[string]bool{longest + "q": true, longest: false} {
				a := f.api(verb, fmt.Sprintf(`{"workflowId":"o",%s,"requestId":%q}`, fields, id))
				e, _ := a["error"].(map[string]any)
				if refused != (e["code"] == "invalid_argument" && e["field"] == "requestId") || !refused && e != nil {
					t.Fatalf("%s with an id of %d bytes: got %v", verb, len(id), a)
				}
			}
			time.Sleep(time.Second)
		}
		f.publish("drover.default.signal.o.end", "1")
		time.Sleep(time.Second)
		if got := f.types("o"); !slices.Contains(got, "WorkflowSuccess") {
			t.Fatalf("got %v, want the end", got)
		}
	})
}

// A header keeps neither line breaks nor spaces at its ends: an id that has some is refused, for it would be another one in the stream, or none,
// and what was sent twice would be applied twice.
func TestRequestIDsThatNoHeaderKeeps(t *testing.T) { // S1-21, P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", renewing)
		f.start(startO)
		for _, id := range []string{" ", "x ", " x", "x\n", "x\ny", "x\t"} {
			a := f.api("signal", fmt.Sprintf(`{"workflowId":"o","name":"s","requestId":%q}`, id))
			e, _ := a["error"].(map[string]any)
			if e["code"] != "invalid_argument" || e["field"] != "requestId" {
				t.Errorf("a signal with the id %q: got %v", id, a)
			}
		}
		for _, id := range []string{"x", "x y", "x:y", "x"} {
			if a := f.api("signal", fmt.Sprintf(`{"workflowId":"o","name":"s","requestId":%q}`, id)); a["error"] != nil {
				t.Errorf("a signal with the id %q: got %v", id, a)
			}
		}
		time.Sleep(time.Second)
		if _, last, err := f.post.StreamState(t.Context(), ns.StreamSignals()); err != nil || last != 4 {
			t.Fatalf("got %d signals and error %v, want those with ids that a header keeps", last, err)
		}
	})
}
