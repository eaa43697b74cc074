package visibility_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/ops/visibility"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// Runs are found as soon as a request that waits for them is answered, with all that is known of them, whether their owner
// is in the process or not.
func TestRunsAreFound(t *testing.T) {
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprintf("told %t", told), func(t *testing.T) {
			live(t, func(t *testing.T, h *house) {
				var x *visibility.Index
				b, stop := h.broker("one", func(p int, from, to uint64, changed []broker.Change) {
					if told {
						x.Changed(p, from, to, changed)
					}
				})
				if x = h.newIndex(); told {
					x = h.newIndex(b)
				}
				h.begin(x)
				h.deciders()
				a := h.start("a", "wait", &drover.StartOptions{Tags: []string{"red"}, Attributes: map[string]string{"customer": "ACME"}})
				h.await(x, "customer = 'ACME' AND tag = red", "a:open")
				time.Sleep(time.Second)
				h.start("b", "fail", nil)
				h.await(x, "status = failed", "b:failed (it was told to)")
				h.await(x, "", "b:failed (it was told to), a:open")
				h.signal(a, "mark")
				h.await(x, "marked IS NOT NULL", "a:open")
				h.signal(a, "done")
				h.await(x, "marked = yes", "a:completed")
				time.Sleep(time.Second)
				h.start("p", "parent", nil)
				h.await(x, "parent = p", "kid:open")
				h.await(x, "type = order AND status = open", "p:open")
				h.same(x)
				stop()
				time.Sleep(61 * time.Minute)
				if got := h.noted(); len(got) > 0 {
					t.Errorf("got %+v of an index that is right", got)
				}
			})
		})
	}
}

// A page ends where it should, and a query's limit counts over all pages.
func TestPages(t *testing.T) {
	live(t, func(t *testing.T, h *house) {
		x := h.index()
		h.broker("one", nil)
		for i := range 10 {
			h.start(fmt.Sprint("w", i), "wait", nil)
			time.Sleep(time.Second)
		}
		var ids string
		for r, err := range h.client.Query(t.Context(), "ORDER BY started LIMIT 7", &drover.QueryOptions{Wait: 5 * time.Second}) {
			if err != nil {
				t.Fatal(err)
			}
			ids += r.WorkflowID
		}
		if want := "w0w1w2w3w4w5w6"; ids != want {
			t.Errorf("got %s, want %s", ids, want)
		}
		q := &ops.QueryRequest{Query: "ORDER BY started LIMIT 7", Filter: "id != w1", Limit: 3}
		var sizes []int
		for {
			a, err := x.Query(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			sizes = append(sizes, len(a.Runs))
			if q.Cursor = a.Cursor; q.Cursor == "" {
				break
			}
		}
		if got := fmt.Sprint(sizes); got != "[3 3 1]" {
			t.Errorf("got pages of %s runs, want 3, 3 and 1", got)
		}
		a, err := h.client.Groups(t.Context(), "GROUP BY status", nil)
		if err != nil || text(t, a.Groups) != `[{"values":["open"],"count":10}]` || a.Total != 10 || a.Columns[0] != "status" {
			t.Errorf("got %+v, %v", a, err)
		}
		if a, err = h.client.Groups(t.Context(), "id STARTS_WITH w", &drover.QueryOptions{Filter: "id = w3"}); err != nil || a.Total != 1 {
			t.Errorf("got %+v, %v, want one run", a, err)
		}
	})
}

// What cannot be understood is refused, with the field, and the column of a query.
func TestRefused(t *testing.T) {
	live(t, func(t *testing.T, h *house) {
		x := h.index()
		for _, tt := range []struct {
			q    ops.QueryRequest
			want string
		}{
			{ops.QueryRequest{Query: "statsu = open"}, "query: column 1: "},
			{ops.QueryRequest{Query: "GROUP BY status"}, "query: GROUP BY"},
			{ops.QueryRequest{Filter: "LIMIT 1"}, "filter: it is more"},
			{ops.QueryRequest{Filter: "status = = 1"}, "filter: column 10: "},
			{ops.QueryRequest{Limit: -1}, "limit: -1"},
			{ops.QueryRequest{Cursor: "x"}, "cursor: "},
			{ops.QueryRequest{Cursor: "1.x"}, "cursor: "},
		} {
			_, err := x.Query(t.Context(), &tt.q)
			e, ok := err.(*schemas.Error)
			if !ok || e.Code != schemas.CodeInvalid || e.Field == "" || len(e.Message) < len(tt.want) || e.Message[:len(tt.want)] != tt.want {
				t.Errorf("%+v: got %v, want %s", tt.q, err, tt.want)
			}
		}
		if _, err := h.client.Groups(t.Context(), "GROUP BY id", nil); err == nil {
			t.Error("groups by id are not refused")
		}
	})
}

// The lag that is stated is never less than the true one, and an index that has heard of nothing says that.
func TestLag(t *testing.T) {
	live(t, func(t *testing.T, h *house) {
		b, _ := h.broker("one", nil) // which tells nobody
		x := h.index(b)
		for range 100 {
			if len(b.Owned()) == partitions {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(5 * time.Second) // it knows by then that the owner is here
		h.start("a", "wait", nil)
		a, err := x.Query(t.Context(), &ops.QueryRequest{})
		if err != nil || len(a.Runs) != 0 || a.Index.Lag < 1 {
			t.Fatalf("got %+v, %v, want no run yet and a lag", a, err)
		}
		h.await(x, "", "a:open") // it is read, since nobody has told
		if a, err = x.Query(t.Context(), &ops.QueryRequest{}); err != nil || a.Index.Lag != 0 || a.Index.Node != "n" {
			t.Errorf("got %+v, %v, want no lag", a, err)
		}
	})
}
