package runs

import (
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// storeRuns stores the last record of some open runs, and of as many that have completed. It returns the id of the last one.
func storeRuns(t *testing.T, r *Reader, n int) (last string) {
	t.Helper()
	for i := range n {
		for _, status := range []schemas.Status{schemas.StatusOpen, schemas.StatusCompleted} {
			last = fmt.Sprintf("%s-%d", status, i)
			h := natsconn.Header{schemas.StatusHeader: {string(status) + " 1 1 order"}}
			put(t, r, subject.Partition(last, r.Partitions), last, "r", h, nil)
		}
	}
	return last
}

// A list reads for so long, and a count too. What there is no time for comes with the next page, and a count says that it is
// cut short.
func TestListsAreBounded(t *testing.T) {
	r := namespace(t, 2)
	const n = 2 * walkWindow
	last := storeRuns(t, r, n)
	for name, q := range map[string]struct {
		schemas.ListRequest
		want int
	}{
		"open":     {schemas.ListRequest{Status: schemas.StatusOpen}, n},
		"none":     {schemas.ListRequest{Status: schemas.StatusFailed}, 0},
		"one id":   {schemas.ListRequest{WorkflowID: last}, 1},
		"no match": {schemas.ListRequest{WorkflowID: last, Status: schemas.StatusOpen}, 0},
	} {
		seen, pages := map[string]int{}, 0
		for pages == 0 || q.Cursor != "" {
			a, err := r.list(t.Context(), &q.ListRequest, time.Now())
			if err != nil {
				t.Fatalf("%s: page %d: %v", name, pages, err)
			}
			if q.Cursor != "" && q.Cursor == a.Cursor {
				t.Fatalf("%s: page %d leads to itself", name, pages)
			}
			for _, i := range a.Executions {
				seen[i.WorkflowID]++
			}
			if pages++; len(seen) < q.want && a.Cursor == "" {
				t.Errorf("%s: %d runs of %d, and nothing says that there is more", name, len(seen), q.want)
			}
			q.Cursor = a.Cursor
		}
		for wid, times := range seen {
			if times != 1 {
				t.Errorf("%s: run %s is shown %d times", name, wid, times)
			}
		}
		if len(seen) != q.want || pages == 1 {
			t.Errorf("%s: got %d runs in %d pages, want %d, and more than one page", name, len(seen), pages, q.want)
		}
	}
	if a, err := r.Count(t.Context(), &schemas.CountRequest{Status: schemas.StatusOpen, Wait: 1}); err != nil || !a.Truncated || a.Count >= n {
		t.Errorf("a count that has no time: got %+v, %v, want it truncated", a, err)
	}
}
