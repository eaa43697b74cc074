package runs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// storeHistory stores a run of so many events in records of one to five, with records of other runs between them, and returns
// its events and where its last record stands.
func storeHistory(t testing.TB, r *Reader, run string, n int64, dice *rand.Rand) (events []schemas.Event, last uint64) {
	t.Helper()
	kinds := []schemas.Attributes{
		&schemas.WorkflowPaused{Reason: "test"}, &schemas.WorkflowResumed{}, &schemas.WorkflowResumed{},
		&schemas.ActivityFailed{Reason: "no", Details: schemas.Text(fmt.Sprintf("%2000d", 7))},
	}
	store := func(run, status string, body []byte) {
		m := &nats.Msg{Subject: r.Namespace.History(0, "w", run), Header: nats.Header{schemas.StatusHeader: {status}}, Data: body}
		if err := r.Conn.NATS().PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	for first := int64(1); first <= n; {
		for range dice.IntN(3) {
			store("other", "open 1 1 order", []byte("{}"))
		}
		record := &schemas.Record{WorkflowID: "w", Run: run, First: first}
		for range min(1+dice.Int64N(5), n-first+1) {
			kind := kinds[0]
			if dice.IntN(10) == 0 {
				kind = kinds[dice.IntN(len(kinds))]
			}
			record.Events = append(record.Events, schemas.Event{ID: first, Time: 1, Attributes: kind})
			first++
		}
		events = append(events, record.Events...)
		store(run, fmt.Sprintf("open %d 1 order", first-1), encoded(t, record))
	}
	if err := r.Conn.NATS().Flush(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for { // the stream stores what was published to it after a moment
		m, err := r.Conn.LastBySubject(ctx, r.Namespace.StreamHistory(0), r.Namespace.History(0, "w", run))
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := placeOf(m); !ok || p.event == n {
			return events, m.Seq
		}
	}
}

// wanted is what a request means: the events that it asks for, in its order.
func wanted(events []schemas.Event, q *schemas.HistoryRequest) (ids []int64) {
	for _, e := range events {
		if e.ID > q.After && (q.Before == 0 || e.ID < q.Before) && (len(q.Types) == 0 || slices.Contains(q.Types, e.Type())) {
			ids = append(ids, e.ID)
		}
	}
	if q.NewestFirst {
		slices.Reverse(ids)
	}
	return ids
}

// pageThrough reads page after page, as a client does.
func pageThrough(t *testing.T, r *Reader, q schemas.HistoryRequest, p PageOf) (ids []int64) {
	t.Helper()
	for {
		a, err := r.Page(t.Context(), 0, &q, p)
		if err != nil {
			t.Fatalf("%+v: %v", q, err)
		}
		if q.Limit > 0 && len(a.Events) > q.Limit {
			t.Fatalf("%+v: got %d events", q, len(a.Events))
		}
		for _, e := range a.Events {
			ids = append(ids, e.ID)
		}
		if len(a.Events) > 0 && a.Next == 0 {
			a.Next = a.Events[len(a.Events)-1].ID
		}
		switch {
		case !a.More:
			return ids
		case q.NewestFirst && (q.Before == 0 || a.Next < q.Before) && a.Next > q.After:
			q.Before = a.Next
		case !q.NewestFirst && a.Next > q.After:
			q.After = a.Next
		default:
			t.Fatalf("%+v: the page ends with event %d, and says that there is more", q, a.Next)
		}
	}
}

// Whatever part of a history is asked for, in whichever order and of whichever types: the pages together have just that.
func TestPagesOfAnyPart(t *testing.T) {
	r := namespace(t, 1)
	r.BodyLimit = func() int { return 100 << 10 }
	const n = 1500
	dice := rand.New(rand.NewPCG(48, 2))
	events, last := storeHistory(t, r, "r", n, dice)
	some := [][]schemas.EventType{nil, nil, {schemas.EventWorkflowResumed}, {schemas.EventActivityFailed, schemas.EventWorkflowResumed}, {schemas.EventTimerExpired}}
	for i := range 30 {
		q := schemas.HistoryRequest{WorkflowID: "w", Run: "r", NewestFirst: dice.IntN(2) == 0, Types: some[dice.IntN(len(some))]}
		p := PageOf{Run: "r", Least: n, Last: last}
		if dice.IntN(2) == 0 {
			q.After = dice.Int64N(n + 10)
		}
		if dice.IntN(2) == 0 {
			q.Before = dice.Int64N(n + 10)
		}
		if q.Limit = 40 + dice.IntN(1000); i < 5 {
			q.Limit = 0
		}
		if dice.IntN(3) == 0 {
			p = PageOf{Run: "r"} // nothing is known of the run
		}
		if got, want := pageThrough(t, r, q, p), wanted(events, &q); !slices.Equal(got, want) {
			t.Fatalf("%+v: got %d events, want %d: %v and %v", q, len(got), len(want), got, want)
		}
	}
}

// A page says that the run has ended only where it reaches the end, and looks at so much and no more.
func TestWhatPagesSay(t *testing.T) {
	r := namespace(t, 1)
	const n = 2 * mostLooked
	_, last := storeHistory(t, r, "r", n, rand.New(rand.NewPCG(48, 3)))
	none := []schemas.EventType{schemas.EventTimerExpired}
	for name, c := range map[string]struct {
		q            schemas.HistoryRequest
		events       int
		more, closed bool
	}{
		"from the end":              {schemas.HistoryRequest{NewestFirst: true, Limit: 3}, 3, true, true},
		"before the end":            {schemas.HistoryRequest{NewestFirst: true, Before: n, Limit: 3}, 3, true, false},
		"the first, from the end":   {schemas.HistoryRequest{NewestFirst: true, Before: 4, Limit: 3}, 3, false, false},
		"nothing between":           {schemas.HistoryRequest{After: 7, Before: 8}, 0, false, false},
		"nothing before the first":  {schemas.HistoryRequest{NewestFirst: true, Before: 1}, 0, false, false},
		"nothing after the last":    {schemas.HistoryRequest{NewestFirst: true, After: n}, 0, false, true},
		"up to the last":            {schemas.HistoryRequest{After: n - 2, Before: n + 1}, 2, false, true},
		"up to the one before it":   {schemas.HistoryRequest{After: n - 2, Before: n}, 1, false, false},
		"none of a type":            {schemas.HistoryRequest{Types: none}, 0, true, false},
		"none of a type, at last":   {schemas.HistoryRequest{Types: none, After: n - 7}, 0, false, true},
		"none of a type, backwards": {schemas.HistoryRequest{Types: none, NewestFirst: true}, 0, true, true},
		"the rest of it":            {schemas.HistoryRequest{Types: none, NewestFirst: true, Before: 9}, 0, false, false},
	} {
		q := c.q
		q.WorkflowID, q.Run = "w", "r"
		a, err := r.Page(t.Context(), 0, &q, PageOf{Run: "r", Least: n, Last: last, Closed: true})
		if err != nil || len(a.Events) != c.events || a.More != c.more || a.Closed != c.closed {
			t.Errorf("%s: got %d events, more %t, closed %t, %v; want %+v", name, len(a.Events), a.More, a.Closed, err, c)
		}
	}
	if _, err := r.Page(t.Context(), 0, &schemas.HistoryRequest{WorkflowID: "w", Run: "none", NewestFirst: true}, PageOf{Run: "none"}); err == nil {
		t.Error("a run that is not there: got no error")
	}
}

// Messages that are no records, or do not say which events they have, are read over.
func TestSeekAmongStrangers(t *testing.T) {
	r := namespace(t, 1)
	var last uint64
	const n = 3 * seekAfter
	for id := int64(1); id <= n; id++ {
		h := natsconn.Header{schemas.StatusHeader: {fmt.Sprintf("open %d 1 order", id)}}
		if id%3 == 0 {
			h = natsconn.Header{schemas.StatusHeader: {"open"}}
			put(t, r, 0, "w", "r", nil, []byte("nobody's"))
		}
		body := encoded(t, &schemas.Record{WorkflowID: "w", Run: "r", First: id, Events: []schemas.Event{
			{ID: id, Attributes: &schemas.WorkflowPaused{Reason: "test"}},
		}})
		last = put(t, r, 0, "w", "r", h, body)
	}
	for _, p := range []PageOf{{Run: "r", Least: n, Last: last}, {Run: "r", Least: n}, {Run: "r"}} {
		for _, after := range []int64{0, seekAfter, n / 2, n - 1, n} {
			q := schemas.HistoryRequest{WorkflowID: "w", Run: "r", After: after}
			if got := pageThrough(t, r, q, p); int64(len(got)) != n-after {
				t.Errorf("%+v, after event %d: got %d events, want %d", p, after, len(got), n-after)
			}
			q.NewestFirst = true
			if got := pageThrough(t, r, q, p); int64(len(got)) != n-after {
				t.Errorf("%+v, after event %d from the end: got %d events, want %d", p, after, len(got), n-after)
			}
		}
	}
}

func BenchmarkPageAnywhere(b *testing.B) {
	r := namespace(b, 1)
	const n = 100_000
	_, last := storeHistory(b, r, "r", n, rand.New(rand.NewPCG(48, 4)))
	for _, newest := range []bool{false, true} {
		for _, at := range []int64{100, 20_000, 50_000, 99_000} {
			b.Run(fmt.Sprintf("newest=%t/at=%d", newest, at), func(b *testing.B) {
				q := &schemas.HistoryRequest{WorkflowID: "w", Run: "r", NewestFirst: newest, Limit: 200, After: at}
				if newest {
					q.After, q.Before = 0, at
				}
				for b.Loop() {
					r.pages = pageIndex{}
					a, err := r.Page(b.Context(), 0, q, PageOf{Run: "r", Least: n, Last: last})
					if err != nil || len(a.Events) == 0 {
						b.Fatal(len(a.Events), err)
					}
				}
			})
		}
	}
}

func BenchmarkSpansOfALongRun(b *testing.B) {
	r := namespace(b, 1)
	const n = 100_000
	storeHistory(b, r, "r", n, rand.New(rand.NewPCG(48, 5)))
	for b.Loop() {
		for q, more := (&ops.SpansRequest{WorkflowID: "w", Run: "r"}), true; more; {
			a, err := r.Spans(b.Context(), q)
			if err != nil {
				b.Fatal(err)
			}
			q.After, more = a.Next, a.More
		}
	}
}
