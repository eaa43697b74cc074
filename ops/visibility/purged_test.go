package visibility_test

import (
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// A run that is purged leaves the index at once where that is told, and soon where nobody tells. A later one with its ids
// stays.
func TestPurgedRunsLeave(t *testing.T) {
	live(t, func(t *testing.T, h *house) {
		x := h.index()
		for _, id := range []string{"a", "b", "c"} {
			h.put(id, "r1", "completed")
		}
		h.await(x, "ORDER BY id", "a:completed, b:completed, c:completed")
		tell := func(id string, seq uint64) {
			body, err := schemas.Marshal(&ops.PurgedRun{WorkflowID: id, Run: "r1", Sequence: seq})
			if err != nil {
				t.Fatal(err)
			}
			if err := h.conn.Publish(h.space.Name.Purged(0), nil, body); err != nil {
				t.Fatal(err)
			}
		}
		h.purge("a", "r1")
		tell("a", 100)
		tell("c", 0) // which has a later record
		if err := h.conn.Publish(h.space.Name.Purged(1), nil, []byte("x")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if got := h.ask(x, "ORDER BY id"); got != "b:completed, c:completed" {
			t.Errorf("2 s after it was told: got %s", got)
		}
		h.purge("b", "r1")
		time.Sleep(time.Minute)
		if got := h.ask(x, "ORDER BY id"); got != "c:completed" {
			t.Errorf("a minute after it was purged: got %s", got)
		}
	})
}
