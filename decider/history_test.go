package decider_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
	"github.com/google/go-cmp/cmp"
)

func eventIDs(events []schemas.Event) []int64 {
	all := make([]int64, len(events))
	for i, e := range events {
		all[i] = e.ID
	}
	return all
}

// The window is complete when Decide sees it, whatever the task carried of it: S1-37.
func TestWindowIsCompleted(t *testing.T) {
	all := long(40, 3, 20, 40)
	for name, c := range map[string]struct {
		change  func(*schemas.DecisionTask)
		stored  int64 // what the history holds
		most    int   // events a page
		want    []int64
		askedBy []int64 // After of each request
	}{
		"whole": {
			func(*schemas.DecisionTask) {}, 40, 100, upTo(20)[3:], nil,
		},
		"more": {
			func(d *schemas.DecisionTask) { d.Events, d.More = d.Events[:5], true }, 40, 100, upTo(20)[3:], []int64{8},
		},
		"more, in small pages": {
			func(d *schemas.DecisionTask) { d.Events, d.More = d.Events[:5], true }, 40, 5, upTo(20)[3:], []int64{8, 13, 18},
		},
		"more, without any": {
			func(d *schemas.DecisionTask) { d.Events, d.More = nil, true }, 40, 100, upTo(20)[3:], []int64{3},
		},
		"more, but its DeciderStarted is not written yet": {
			func(d *schemas.DecisionTask) { d.Events, d.More = d.Events[:5], true }, 19, 100, upTo(19)[3:], []int64{8},
		},
		"more, but its DeciderStarted only": {
			func(d *schemas.DecisionTask) { d.Events, d.More = d.Events[:16], true }, 19, 100, upTo(19)[3:], []int64{19},
		},
		"its DeciderStarted is not written yet": {
			func(d *schemas.DecisionTask) { d.Events = d.Events[:16] }, 19, 100, upTo(19)[3:], nil,
		},
		"cut short without a word": {
			func(d *schemas.DecisionTask) { d.Events = d.Events[:5] }, 40, 100, upTo(20)[3:], []int64{8},
		},
		"with a hole": {
			func(d *schemas.DecisionTask) { d.Events = append(d.Events[:5:5], d.Events[6:]...) }, 40, 100, upTo(20)[3:], []int64{8},
		},
		"beginning too early, ending too late": {
			func(d *schemas.DecisionTask) { d.Events = all[1:25] }, 40, 100, upTo(20)[3:], nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				s := h.serveHistory(all[:c.stored], c.most)
				h.run(nil, "order", func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
					if diff := cmp.Diff(c.want, eventIDs(task.Events())); diff != "" {
						t.Errorf("window (-want +got):\n%s", diff)
					}
					return nil, nil
				})
				task := window(all[:20], 3)
				c.change(task)
				h.ask(task).wantDecisions(t)
				var after []int64
				for _, q := range s.requests {
					if q.WorkflowID != "w" || q.Run != "r" || q.Limit < 1 || q.Wait != 0 {
						t.Fatalf("history request %+v", q)
					}
					after = append(after, q.After)
				}
				if diff := cmp.Diff(c.askedBy, after); diff != "" {
					t.Fatalf("pages asked for after (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A decider sees nothing after its DeciderStarted, even if the history has more by now: S1-6, S1-37.
func TestHistoryNeverPassesStartedID(t *testing.T) {
	all := long(1500, 3, 20, 40)
	for name, most := range map[string]int{"one page": 2000, "pages of 7": 7, "single events": 1} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				h.serveHistory(all, most)
				h.run(nil, "order", func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
					for range 2 {
						if diff := cmp.Diff(upTo(40), ids(t, ctx, task)); diff != "" {
							t.Errorf("history (-want +got):\n%s", diff)
						}
					}
					v, err := task.View(ctx)
					if err != nil || v.LastID() != 40 || v.Signals("s39") == nil || v.Signals("s41") != nil {
						t.Errorf("view ends at %d, %v", v.LastID(), err)
					}
					return nil, nil
				})
				task := window(all[:40], 20)
				task.Events, task.More = task.Events[:1], true
				h.ask(task).wantDecisions(t)
			})
		})
	}
}

// A worker that has just begun reads no more than once what it needs. temporal#5439, sdk-go#1716.
func TestLongHistoryIsReadInPagesAndOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		all := long(3000, 2500, 3000)
		s := h.serveHistory(all, 5000)
		h.run(nil, "order", func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
			for e := range task.History(ctx) { // a loop that ends early reads no further
				if e.ID == 10 {
					break
				}
			}
			if got := s.count(); got != 1 {
				t.Errorf("%d pages were read for ten events", got)
			}
			if got := len(ids(t, ctx, task)); got != 3000 {
				t.Errorf("got %d events", got)
			}
			ids(t, ctx, task)
			return nil, nil
		})
		h.ask(window(all, 2500)).wantDecisions(t)
		if got := s.count(); got != 5 {
			t.Fatalf("2500 events were read in %d pages, want 5", got)
		}
	})
}

func TestContextNeedsNoHistory(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		s := h.serveHistory(long(9), 9)
		h.run(nil, "order", nothing)
		h.ask(window(long(900, 800, 900), 800)).wantDecisions(t)
		if got := s.count(); got != 0 {
			t.Fatalf("%d pages were read for a decider that asked for none", got)
		}
	})
}

func TestHistoryThatCannotBeRead(t *testing.T) {
	gone := func(code schemas.Code) []*schemas.Error {
		return []*schemas.Error{schemas.Errorf(code, "no such run").WithHint("look it up")}
	}
	all := long(40, 20, 40)
	for name, c := range map[string]struct {
		stored   []schemas.Event
		refusals []*schemas.Error
		want     string // empty: decided in the end
	}{
		"refused":            {all, gone(schemas.CodeNotFound), "no such run (look it up)"},
		"unavailable":        {all, gone(schemas.CodeUnavailable), ""},
		"timed out":          {all, append(gone(schemas.CodeTimeout), gone(schemas.CodeTimeout)...), ""},
		"ends too early":     {all[:10], nil, "it ends at event 10"},
		"is empty":           {nil, nil, "it ends at event 0"},
		"has lost its start": {all[5:], nil, "begins with 6"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				s := h.serveHistory(c.stored, 100)
				s.refusals = c.refusals
				h.run(nil, "order", func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
					_, err := task.View(ctx)
					if err != nil && !errors.Is(err, decider.ErrHistory) {
						t.Errorf("got %v, want ErrHistory", err)
					}
					return nil, err
				})
				r := h.ask(window(all, 20))
				if c.want == "" {
					r.wantDecisions(t)
				} else if r.Error == nil || !strings.Contains(r.Error.Reason, c.want) {
					t.Fatalf("got %s, want an error with %q", r.body, c.want)
				}
			})
		})
	}
}

func TestWindowThatCannotBeReadIsAnError(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		h.serveHistory(long(10), 100)
		h.run(nil, "order", func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			t.Error("Decide was called with half a window")
			return nil, nil
		})
		task := window(long(40, 3, 40), 3)
		task.Events, task.More = task.Events[:5], true
		if r := h.ask(task); r.Error == nil || !strings.Contains(r.Error.Reason, "within the window") {
			t.Fatalf("got %s", r.body)
		}
	})
}

// While a partition changes its owner nobody serves its history. The worker asks again, as long as the decision may take.
func TestHistoryWaitsForAnOwner(t *testing.T) {
	all := long(40, 20, 40)
	view := func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
		_, err := task.View(ctx)
		return nil, err
	}
	t.Run("that comes", func(t *testing.T) {
		inBubble(t, func(t *testing.T, h *house) {
			h.run(nil, "order", view)
			h.send(ns.Decide("order"), encoded(t, due(window(all, 20), 10*time.Second)), "one")
			time.Sleep(5 * time.Second)
			h.serveHistory(all, 100)
			h.receive().wantDecisions(t)
		})
	})
	t.Run("that does not come", func(t *testing.T) {
		inBubble(t, func(t *testing.T, h *house) {
			o, seen := observed(decider.Options{Timeout: 5 * time.Second})
			h.run(o, "order", view)
			if r := h.ask(window(all, 20)); r.Error == nil {
				t.Fatalf("got %s, want an error", r.body)
			}
			wantOutcomes(t, seen, decider.OutcomeTimedOut)
		})
	})
	t.Run("that does not answer at first", func(t *testing.T) {
		inBubble(t, func(t *testing.T, h *house) {
			silent, err := h.broker.Subscribe(ns.API("history"), "api", func(natsconn.Msg) {})
			if err != nil {
				t.Fatal(err)
			}
			h.run(nil, "order", view)
			h.send(ns.Decide("order"), encoded(t, due(window(all, 20), 10*time.Second)), "one")
			time.Sleep(time.Second)
			if err := silent.Close(); err != nil {
				t.Fatal(err)
			}
			h.serveHistory(all, 100)
			h.receive().wantDecisions(t)
		})
	})
}

func TestNewTask(t *testing.T) {
	all := long(20, 3, 20)
	t.Run("from event 1", func(t *testing.T) {
		task, err := decider.NewTask(*window(all, 0))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(upTo(20), ids(t, t.Context(), task)); diff != "" {
			t.Fatalf("history (-want +got):\n%s", diff)
		}
		if want := all[19].Time.Time(); !task.StartedAt().Equal(want) {
			t.Errorf("got %v, want the time of event 20, %v", task.StartedAt(), want)
		}
	})
	t.Run("told when it started", func(t *testing.T) {
		dt := window(all, 0)
		dt.StartedAt = all[19].Time + 1
		task, err := decider.NewTask(*dt)
		if err != nil || !task.StartedAt().Equal(dt.StartedAt.Time()) {
			t.Fatalf("got %v, %v; want %v", task.StartedAt(), err, dt.StartedAt.Time())
		}
	})
	t.Run("from the middle", func(t *testing.T) {
		task, err := decider.NewTask(*window(all, 3))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := task.View(t.Context()); !errors.Is(err, decider.ErrHistory) {
			t.Fatalf("got %v, want ErrHistory", err)
		}
	})
	for name, change := range map[string]func(*schemas.DecisionTask){
		"half a window": func(d *schemas.DecisionTask) { d.Events = d.Events[:5] },
		"more":          func(d *schemas.DecisionTask) { d.Events, d.More = d.Events[:19], true },
		"no workflow":   func(d *schemas.DecisionTask) { d.WorkflowID = "" },
		"no window":     func(d *schemas.DecisionTask) { d.StartedID = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			task := window(all, 0)
			change(task)
			if _, err := decider.NewTask(*task); !errors.Is(err, decider.ErrInvalidTask) {
				t.Fatalf("got %v, want ErrInvalidTask", err)
			}
		})
	}
}
