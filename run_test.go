package drover_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

func TestResultWaitsUntilTheRunEnds(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{})
		on(s, "result", func(n int, req schemas.ExecutionRequest) any {
			if n > 1 && req.Run != "r1" {
				t.Errorf("request %d names run %q, want the one of the first answer", n, req.Run)
			}
			time.Sleep(req.Wait.Std())
			if n < 100 {
				return schemas.ResultResponse{Run: "r1", Status: schemas.StatusOpen}
			}
			return schemas.ResultResponse{Run: "r1", Status: schemas.StatusCompleted, Result: schemas.Payload("42")}
		})
		var got int
		began := time.Now()
		if err := c.Run("a", "").Result(t.Context(), &got); err != nil || got != 42 {
			t.Fatalf("got %d, %v, want 42", got, err)
		}
		if took := time.Since(began); took != 500*time.Second {
			t.Fatalf("took %v, want the time that the server held back, and nothing more", took)
		}
	})
}

// The longest patience is as good as any: a long poll adds to it.
func TestResultWithTheLongestTimeout(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{Timeout: math.MaxInt64})
		on(s, "result", func(n int, _ schemas.ExecutionRequest) any {
			if n < 100 {
				return nil // as if the server had gone
			}
			return schemas.ResultResponse{Run: "r1", Status: schemas.StatusCompleted}
		})
		if err := c.Run("a", "").Result(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	})
}

func TestResultDoesNotSpin(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{})
		on(s, "result", func(int, schemas.ExecutionRequest) any {
			return schemas.ResultResponse{Run: "r1", Status: schemas.StatusPaused}
		})
		err := c.Run("a", "").Result(bounded(t, 20*time.Second), nil)
		if e := wantError(t, err, drover.ErrTimeout); e.Run != "r1" || !strings.Contains(e.Hint, "had not ended") {
			t.Fatalf("got %#v", e)
		}
		if n := len(s.requests("result")); n > 26 {
			t.Fatalf("asked %d times in 20 s, want about one a second", n)
		}
	})
}

// A run is said to be open still only by a server that has answered: one that stands still tells nothing of it.
func TestSilenceIsNoOpenRun(t *testing.T) {
	for verb, wait := range map[string]func(context.Context, *drover.Run) error{
		"result": func(ctx context.Context, r *drover.Run) error { return r.Result(ctx, nil) },
		"history": func(ctx context.Context, r *drover.Run) (err error) {
			for _, err = range r.History(ctx, drover.HistoryOptions{Follow: true}) {
			}
			return err
		},
	} {
		for _, tc := range []struct {
			name      string
			asleep    int // from which question on the server stands still
			limit     time.Duration
			open      bool
			mostAsked int
		}{
			{"a server that holds back for as long as it is asked to", 1 << 30, 3 * time.Second, true, 20},
			{"the same, for long", 1 << 30, time.Minute, true, 40},
			{"a server that stands still", 0, 3 * time.Second, false, 20},
			{"a server that stops", 2, time.Minute, false, 20},
		} {
			t.Run(verb+", "+tc.name, func(t *testing.T) {
				virtual.Run(t, func(t *testing.T) {
					c, s := newService(t, drover.Options{})
					on(s, verb, func(n int, q schemas.HistoryRequest) any {
						if n >= tc.asleep {
							return nil
						}
						time.Sleep(q.Wait.Std())
						return map[string]any{"run": "r1", "status": "open"}
					})
					e := wantError(t, wait(bounded(t, tc.limit), c.Run("a", "")), drover.ErrTimeout)
					if open := strings.Contains(e.Hint, "had not ended"); open != tc.open || e.Hint == "" {
						t.Errorf("got the hint %q, want one that says so: %v", e.Hint, tc.open)
					}
					if n := len(s.requests(verb)); n > tc.mostAsked {
						t.Errorf("asked %d times, want %d at most", n, tc.mostAsked)
					}
				})
			})
		}
	}
}

// A wait between two questions ends as a call does: with the caller's cause, and no code.
func TestCanceledWaitEnds(t *testing.T) {
	for verb, wait := range map[string]func(context.Context, *drover.Run) error{
		"result": func(ctx context.Context, r *drover.Run) error { return r.Result(ctx, nil) },
		"history": func(ctx context.Context, r *drover.Run) (err error) {
			for _, err = range r.History(ctx, drover.HistoryOptions{Follow: true}) {
			}
			return err
		},
	} {
		t.Run(verb, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				c, s := newService(t, drover.Options{})
				on(s, verb, func(int, map[string]any) any { return map[string]any{"run": "r1"} }) // not held back
				ctx, cancel := context.WithCancelCause(t.Context())
				cause := errors.New("the user left")
				time.AfterFunc(10*time.Second+time.Millisecond, func() { cancel(cause) })
				err := wait(ctx, c.Run("a", ""))
				if e := wantError(t, err, context.Canceled); e.Code != "" || !errors.Is(err, cause) {
					t.Fatalf("got %v, code %q, want the cause and no code", err, e.Code)
				}
			})
		})
	}
}

func TestResultOfARunThatDidNotComplete(t *testing.T) {
	for status, want := range map[schemas.Status]string{
		schemas.StatusFailed:         `drover: workflow "a" run r1: failed: card-declined`,
		schemas.StatusCanceled:       `drover: workflow "a" run r1: canceled: card-declined`,
		schemas.StatusTerminated:     `drover: workflow "a" run r1: terminated: card-declined`,
		schemas.StatusTimedOut:       `drover: workflow "a" run r1: timed out: card-declined`,
		schemas.StatusContinuedAsNew: `drover: workflow "a" run r1: continued as new: card-declined`,
	} {
		t.Run(string(status), func(t *testing.T) {
			c, s := newService(t, drover.Options{})
			on(s, "result", func(int, schemas.ExecutionRequest) any {
				return schemas.ResultResponse{Run: "r1", Status: status, Reason: "card-declined", Details: schemas.Payload(`{"n":1}`)}
			})
			err := c.Run("a", "r1").Result(t.Context(), nil)
			got, ok := errors.AsType[*drover.WorkflowError](err)
			if !ok {
				t.Fatalf("got %v, want *WorkflowError", err)
			}
			diff := cmp.Diff(&drover.WorkflowError{ID: "a", Run: "r1", Status: status, Reason: "card-declined", Details: schemas.Payload(`{"n":1}`)}, got)
			if diff != "" || err.Error() != want {
				t.Fatalf("got %q, want %q %s", err, want, diff)
			}
		})
	}
}

func TestWorkflowErrorSaysNothingTwice(t *testing.T) {
	e := &drover.WorkflowError{ID: "a", Run: "r1", Status: schemas.StatusCanceled, Reason: "canceled"}
	if got, want := e.Error(), `drover: workflow "a" run r1: canceled`; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestResultFollowsContinuedRuns(t *testing.T) {
	c, s := newService(t, drover.Options{})
	on(s, "result", func(n int, req schemas.ExecutionRequest) any {
		if want := fmt.Sprintf("r%d", n); req.Run != want {
			t.Errorf("asked about run %q, want %q", req.Run, want)
		}
		if n < 4 {
			return schemas.ResultResponse{Run: req.Run, Status: schemas.StatusContinuedAsNew, NewRun: fmt.Sprintf("r%d", n+1)}
		}
		return schemas.ResultResponse{Run: req.Run, Status: schemas.StatusCompleted}
	})
	o, err := c.Run("a", "r1").Wait(t.Context())
	if err != nil || o.Run != "r4" || o.Err() != nil {
		t.Fatalf("got %+v, %v, want r4 completed", o, err)
	}
}

// P-5: pause and resume carry the run id that was resolved before their first publish.
func TestOperatorRequestsNameTheRun(t *testing.T) {
	c, s := newService(t, drover.Options{Name: "op:1"})
	on(s, "describe", func(int, schemas.ExecutionRequest) any {
		return schemas.DescribeResponse{Execution: schemas.ExecutionInfo{Run: "r7"}}
	})
	var got []schemas.ExecutionRequest
	for _, verb := range []string{"pause", "resume"} {
		on(s, verb, func(_ int, req schemas.ExecutionRequest) any {
			got = append(got, req)
			return schemas.AckResponse{Run: req.Run}
		})
	}
	if err := c.Run("a", "").Pause(t.Context(), "to look at it"); err != nil {
		t.Fatal(err)
	}
	if err := c.Run("a", "r6").Resume(t.Context(), "seen"); err != nil {
		t.Fatal(err)
	}
	if got[0].RequestID == "" || got[0].RequestID == got[1].RequestID {
		t.Fatalf("got request ids %q and %q, want two", got[0].RequestID, got[1].RequestID)
	}
	want := []schemas.ExecutionRequest{
		{V: 1, WorkflowID: "a", Run: "r7", Chain: true, Reason: "to look at it", Identity: "op:1", RequestID: got[0].RequestID},
		{V: 1, WorkflowID: "a", Run: "r6", Reason: "seen", Identity: "op:1", RequestID: got[1].RequestID},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if n := len(s.requests("describe")); n != 1 {
		t.Fatalf("described %d times, want once", n)
	}
}

func TestSignalGoesToTheWorkflowID(t *testing.T) {
	c, s := newService(t, drover.Options{})
	var got schemas.SignalRequest
	on(s, "signal", func(_ int, req schemas.SignalRequest) any { got = req; return schemas.SignalResponse{} })
	if err := c.Run("a", "r1").Signal(t.Context(), "ready", 1); err != nil {
		t.Fatal(err)
	}
	want := schemas.SignalRequest{V: 1, WorkflowID: "a", Name: "ready", Input: schemas.Payload("1"), RequestID: got.RequestID}
	if diff := cmp.Diff(want, got); diff != "" || got.RequestID == "" {
		t.Fatalf("request id %q %s", got.RequestID, diff)
	}
}

// events makes a history of n events.
func events(from, to int64) []schemas.Event {
	var all []schemas.Event
	for id := from; id <= to; id++ {
		all = append(all, schemas.Event{ID: id, Time: schemas.Timestamp(id), Attributes: &schemas.Marker{MarkerName: fmt.Sprint(id)}})
	}
	return all
}

func ids(t *testing.T, r *drover.Run, o drover.HistoryOptions) (got []int64, err error) {
	t.Helper()
	for e, err := range r.History(t.Context(), o) {
		if err != nil {
			return got, err
		}
		got = append(got, e.ID)
	}
	return got, nil
}

func TestHistoryPages(t *testing.T) {
	c, s := newService(t, drover.Options{})
	on(s, "history", func(n int, req schemas.HistoryRequest) any {
		if n > 1 && req.Run != "r1" {
			t.Errorf("page %d names run %q, want the one of the first page", n, req.Run)
		}
		last := min(req.After+3, 8)
		// A page may begin with what was seen already.
		return schemas.HistoryResponse{Run: "r1", Events: events(max(req.After-1, 1), last), More: last < 8, Closed: false}
	})
	for _, tt := range []struct {
		after int64
		want  []int64
	}{{0, []int64{1, 2, 3, 4, 5, 6, 7, 8}}, {6, []int64{7, 8}}, {8, nil}, {-1, []int64{1, 2, 3, 4, 5, 6, 7, 8}}} {
		s.mu.Lock()
		clear(s.asked)
		s.mu.Unlock()
		got, err := ids(t, c.Run("a", ""), drover.HistoryOptions{After: tt.after})
		if err != nil || !slices.Equal(got, tt.want) {
			t.Fatalf("after %d: got %v, %v, want %v", tt.after, got, err, tt.want)
		}
	}
}

func TestHistoryStopsWhenTheReaderDoes(t *testing.T) {
	c, s := newService(t, drover.Options{})
	on(s, "history", func(_ int, req schemas.HistoryRequest) any {
		return schemas.HistoryResponse{Run: "r1", Events: events(req.After+1, req.After+3), More: true}
	})
	for e, err := range c.Run("a", "").History(t.Context(), drover.HistoryOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.ID == 5 {
			break
		}
	}
	if n := len(s.requests("history")); n != 2 {
		t.Fatalf("asked for %d pages, want 2", n)
	}
}

// What is told of a run as a whole is told once, however many pages its history has: that it is kept softly at first, that it was replayed
// at last.
func TestHistoryTellsOfTheRun(t *testing.T) {
	c, s := newService(t, drover.Options{})
	on(s, "history", func(_ int, req schemas.HistoryRequest) any {
		last := min(req.After+3, 8)
		a := schemas.HistoryResponse{Run: "r1", Events: events(req.After+1, last), More: last < 8, Closed: last == 8, Soft: true}
		if a.Closed {
			a.ReplayedBy = "r2"
		}
		return a
	})
	var got []string
	o := drover.HistoryOptions{OnSoft: func() { got = append(got, "soft") }, OnReplayed: func(run string) { got = append(got, "replayed as "+run) }}
	for e, err := range c.Run("a", "").History(t.Context(), o) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strconv.FormatInt(e.ID, 10))
	}
	want := []string{"soft", "1", "2", "3", "4", "5", "6", "7", "8", "replayed as r2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for range c.Run("a", "").History(t.Context(), drover.HistoryOptions{OnReplayed: func(string) { t.Error("told of before the end") }}) {
		break
	}
}

func TestHistoryFollows(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{})
		on(s, "history", func(n int, req schemas.HistoryRequest) any {
			switch n {
			case 1:
				return schemas.HistoryResponse{Run: "r1", Events: events(1, 2)}
			case 2: // held back and nothing came
				time.Sleep(req.Wait.Std())
				return schemas.HistoryResponse{Run: "r1"}
			case 3: // the server dies with the request
				return nil
			case 4:
				return schemas.HistoryResponse{Run: "r1", Events: events(3, 3)}
			default:
				return schemas.HistoryResponse{Run: "r1", Events: events(4, 5), Closed: true}
			}
		})
		got, err := ids(t, c.Run("a", ""), drover.HistoryOptions{Follow: true})
		if err != nil || !slices.Equal(got, []int64{1, 2, 3, 4, 5}) {
			t.Fatalf("got %v, %v", got, err)
		}
	})
}

func TestHistoryFollowDoesNotSpin(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{})
		on(s, "history", func(int, schemas.HistoryRequest) any { return schemas.HistoryResponse{Run: "r1"} })
		var err error
		for _, err = range c.Run("a", "").History(bounded(t, 20*time.Second), drover.HistoryOptions{Follow: true}) {
		}
		wantError(t, err, drover.ErrTimeout)
		if n := len(s.requests("history")); n > 26 {
			t.Fatalf("asked %d times in 20 s, want about one a second", n)
		}
	})
}

// Bad input: histories. A gap is an error, never skipped.
func TestHistoryWithAGap(t *testing.T) {
	c, s := newService(t, drover.Options{})
	on(s, "history", func(n int, _ schemas.HistoryRequest) any {
		if n == 1 {
			return schemas.HistoryResponse{Run: "r1", Events: append(events(1, 2), events(4, 5)...)}
		}
		return schemas.HistoryResponse{Run: "r1", More: true}
	})
	got, err := ids(t, c.Run("a", ""), drover.HistoryOptions{})
	wantError(t, err, drover.ErrInternal)
	if !slices.Equal(got, []int64{1, 2}) || !strings.Contains(err.Error(), "event 4 after event 2") {
		t.Fatalf("got %v, %v", got, err)
	}
	_, err = ids(t, c.Run("a", ""), drover.HistoryOptions{})
	wantError(t, err, drover.ErrInternal)
}

func TestListPages(t *testing.T) {
	c, s := newService(t, drover.Options{})
	const total = 450
	on(s, "list", func(_ int, req schemas.ListRequest) any {
		if req.Status != schemas.StatusOpen || req.Type != "order" || req.Prefix != "o-" {
			t.Errorf("got filter %+v", req)
		}
		from := 0
		if req.Cursor != "" {
			if _, err := fmt.Sscan(req.Cursor, &from); err != nil {
				t.Error(err)
			}
		}
		var page schemas.ListResponse
		if req.Limit > 200 { // the server's message holds no more
			return schemas.ListResponse{Error: schemas.Errorf(schemas.CodeTooLarge, "the answer is too large")}
		}
		for n := from; n < min(from+req.Limit, total); n++ {
			page.Executions = append(page.Executions, schemas.ExecutionInfo{WorkflowID: fmt.Sprintf("o-%d", n)})
		}
		if end := from + len(page.Executions); end < total {
			page.Cursor = fmt.Sprint(end)
		}
		return page
	})
	for limit, want := range map[int]int{0: total, 1: 1, 200: 200, 201: 201, 1000: total} {
		n := 0
		for e, err := range c.List(t.Context(), drover.ListOptions{Status: schemas.StatusOpen, Type: "order", Prefix: "o-", Limit: limit}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.WorkflowID != fmt.Sprintf("o-%d", n) {
				t.Fatalf("line %d is %q", n, e.WorkflowID)
			}
			n++
		}
		if n != want {
			t.Fatalf("limit %d: got %d lines, want %d", limit, n, want)
		}
	}
}

func TestListThatRepeatsItsPage(t *testing.T) {
	c, s := newService(t, drover.Options{})
	on(s, "list", func(int, schemas.ListRequest) any { return schemas.ListResponse{Cursor: "x"} })
	var err error
	for _, err = range c.List(t.Context(), drover.ListOptions{}) {
	}
	wantError(t, err, drover.ErrInternal)
}

func TestDeadLetters(t *testing.T) {
	c, s := newService(t, drover.Options{})
	on(s, "dead", func(_ int, req schemas.DeadRequest) any {
		if req.Reason != "unknown-workflow" {
			t.Errorf("got reason %q", req.Reason)
		}
		letter := func(n uint64) schemas.DeadEntry {
			return schemas.DeadEntry{Sequence: n, DeadLetter: schemas.DeadLetter{Reason: req.Reason}}
		}
		if req.After < 6 {
			return schemas.DeadResponse{Letters: []schemas.DeadEntry{letter(req.After + 1), letter(req.After + 2)}, After: req.After + 2}
		}
		return schemas.DeadResponse{Letters: []schemas.DeadEntry{letter(req.After + 1)}}
	})
	var got []uint64
	for e, err := range c.DeadLetters(t.Context(), drover.DeadOptions{Reason: "unknown-workflow", After: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Sequence)
	}
	if !slices.Equal(got, []uint64{3, 4, 5, 6, 7}) {
		t.Fatalf("got %v", got)
	}
}

// A part of a history is read page by page in either order; of some types no event is missed for what lies between them.
func TestPartsOfAHistory(t *testing.T) {
	c, s := newService(t, drover.Options{})
	const last = 8
	on(s, "history", func(_ int, req schemas.HistoryRequest) any {
		var page []schemas.Event
		for _, e := range events(1, last) { // of types the even ones
			if e.ID > req.After && (req.Before == 0 || e.ID < req.Before) && (len(req.Types) == 0 || e.ID%2 == 0) {
				page = append(page, e)
			}
		}
		if req.NewestFirst {
			slices.Reverse(page)
		}
		a := schemas.HistoryResponse{Run: "r1", More: len(page) > 2}
		if a.Events = page[:min(2, len(page))]; req.Limit > 0 {
			a.Events = a.Events[:min(req.Limit, len(a.Events))]
		}
		if n := len(a.Events); n > 0 && (req.NewestFirst || len(req.Types) > 0) {
			a.Next = a.Events[n-1].ID
		}
		return a
	})
	types := []schemas.EventType{schemas.EventMarker}
	for name, tt := range map[string]struct {
		o    drover.HistoryOptions
		want []int64
	}{
		"before":              {drover.HistoryOptions{Before: 4}, []int64{1, 2, 3}},
		"between":             {drover.HistoryOptions{After: 2, Before: 7}, []int64{3, 4, 5, 6}},
		"newest first":        {drover.HistoryOptions{NewestFirst: true}, []int64{8, 7, 6, 5, 4, 3, 2, 1}},
		"newest first, after": {drover.HistoryOptions{NewestFirst: true, After: 3, Before: 7}, []int64{6, 5, 4}},
		"the last":            {drover.HistoryOptions{NewestFirst: true, Limit: 3}, []int64{8, 7, 6}},
		"the first":           {drover.HistoryOptions{Limit: 3}, []int64{1, 2, 3}},
		"types":               {drover.HistoryOptions{Types: types}, []int64{2, 4, 6, 8}},
		"types, newest first": {drover.HistoryOptions{Types: types, NewestFirst: true}, []int64{8, 6, 4, 2}},
		"the last of a type":  {drover.HistoryOptions{Types: types, NewestFirst: true, Limit: 1}, []int64{8}},
	} {
		got, err := ids(t, c.Run("a", ""), tt.o)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, tt.want)
		}
	}
	for _, o := range []drover.HistoryOptions{{Follow: true, NewestFirst: true}, {Follow: true, Before: 3}} {
		if got, err := ids(t, c.Run("a", ""), o); err == nil || len(got) > 0 {
			t.Errorf("%+v: got %v and no error", o, got)
		}
	}
}

// Pages without an event are passed over, also in a history that is followed; one that does not go on is an error.
func TestHistoryOfARareType(t *testing.T) {
	c, s := newService(t, drover.Options{})
	on(s, "history", func(_ int, req schemas.HistoryRequest) any {
		switch {
		case req.After < 10:
			return schemas.HistoryResponse{Run: "r1", Next: 10, More: true}
		case req.After == 10:
			return schemas.HistoryResponse{Run: "r1", Next: 15}
		}
		return schemas.HistoryResponse{Run: "r1", Events: events(20, 20), Next: 21, Closed: true}
	})
	o := drover.HistoryOptions{Types: []schemas.EventType{schemas.EventMarker}, Follow: true}
	if got, err := ids(t, c.Run("a", ""), o); err != nil || !slices.Equal(got, []int64{20}) {
		t.Errorf("got %v, %v, want event 20", got, err)
	}
	c, s = newService(t, drover.Options{})
	on(s, "history", func(_ int, req schemas.HistoryRequest) any {
		return schemas.HistoryResponse{Run: "r1", Next: req.After, More: true}
	})
	if _, err := ids(t, c.Run("a", ""), o); err == nil {
		t.Error("got no error of a history that does not go on")
	}
}

// A server that gives the oldest first when it is asked for the newest is found out.
func TestHistoryInTheWrongOrder(t *testing.T) {
	c, s := newService(t, drover.Options{})
	on(s, "history", func(int, schemas.HistoryRequest) any {
		return schemas.HistoryResponse{Run: "r1", Events: events(1, 3), Closed: true}
	})
	_, err := ids(t, c.Run("a", ""), drover.HistoryOptions{NewestFirst: true})
	wantError(t, err, drover.ErrInternal)
}
