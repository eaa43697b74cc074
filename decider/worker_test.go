package decider_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
)

func TestReplyCarriesDecisionsContextAndIdentity(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		h.run(&decider.Options{Identity: "me"}, "order", func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
			task.SetContext(schemas.Payload(`{"n":1}`))
			return []schemas.Decision{decider.Schedule("a", "charge", 7), decider.Timer("t", time.Second)}, nil
		})
		r := h.ask(first())
		r.wantDecisions(t, schemas.DecideScheduleActivity, schemas.DecideScheduleTimer)
		if got, want := [3]string{r.Token, r.Identity, string(r.Context)}, [3]string{"token-3", "me", `{"n":1}`}; got != want {
			t.Fatalf("got token, identity, context %q, want %q", got, want)
		}
	})
}

func TestContextIsCarriedOnUnlessSet(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*decider.Task)
		want string
	}{
		"untouched": {func(*decider.Task) {}, `"old"`},
		"set":       {func(task *decider.Task) { task.SetContext(schemas.Payload(`"new"`)) }, `"new"`},
		"cleared":   {func(task *decider.Task) { task.SetContext(nil) }, ``},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				h.run(nil, "order", func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
					if got := string(task.Context()); got != `"old"` {
						t.Errorf("got context %s", got)
					}
					c.set(task)
					return nil, nil
				})
				task := first()
				task.Context = schemas.Payload(`"old"`)
				if got := string(h.ask(task).Context); got != c.want {
					t.Fatalf("got context %q, want %q", got, c.want)
				}
			})
		})
	}
}

// What a decider says of its answer goes with it, and is gone with an error.
func TestWhatAReplySays(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		h.run(nil, "order", func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
			if task.AllOrNothing() || task.Again() {
				t.Error("a new task says what a former answer said")
			}
			task.SetAllOrNothing(task.Attempt() > 1)
			task.SetAgain(task.Attempt() == 1)
			if task.AllOrNothing() != (task.Attempt() > 1) || task.Again() == task.AllOrNothing() {
				t.Error("the task does not show what was set")
			}
			if task.Attempt() > 2 {
				return nil, errors.New("no")
			}
			return []schemas.Decision{decider.Complete(nil)}, nil
		})
		for attempt, want := range map[int]bool{1: false, 2: true, 3: false} {
			task := first()
			task.Attempt = attempt
			if r := h.ask(task); r.AllOrNothing != want || r.Again != (attempt == 1) || (r.Error != nil) != (attempt == 3) {
				t.Errorf("attempt %d: got %+v, want all or nothing %v, and again of the first", attempt, r.DecisionReply, want)
			}
		}
	})
}

func TestTaskShowsWhatTheBrokerAsked(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		want := window(long(9, 3, 9), 3)
		want.TypeVersion, want.Attempt, want.Deadline = "2", 4, schemas.At(time.Now().Add(time.Hour))
		want.StartedAt = schemas.At(time.Now().Add(-time.Minute))
		h.run(nil, "order", func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
			got := []any{task.Namespace(), task.Execution(), task.Type(), task.TypeVersion(), task.Attempt(), task.PreviousStartedID(), task.StartedID(), task.StartedAt(), task.Deadline(), len(task.Events())}
			if diff := cmp.Diff([]any{"default", schemas.Execution{WorkflowID: "w", Run: "r"}, "order", "2", 4, int64(3), int64(9), want.StartedAt.Time(), want.Deadline.Time(), 6}, got); diff != "" {
				t.Errorf("task (-want +got):\n%s", diff)
			}
			if deadline, ok := ctx.Deadline(); !ok || !deadline.Equal(want.Deadline.Time()) {
				t.Errorf("the context ends at %v, %v", deadline, ok)
			}
			return nil, nil
		})
		h.ask(want).wantDecisions(t)
	})
}

func TestEmptyDecisionIsAList(t *testing.T) { // S1-38
	inBubble(t, func(t *testing.T, h *house) {
		h.run(nil, "order", nothing)
		if r := h.ask(first()); !strings.Contains(string(r.body), `"decisions":[]`) || r.Error != nil {
			t.Fatalf("got %s, want an empty list of decisions", r.body)
		}
	})
}

func TestAnswerComesInTheEncodingOfTheTask(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		h.run(nil, "order", nothing)
		asked := h.ask(first())
		if !schemas.IsJSON(asked.body) || asked.V != schemas.Version {
			t.Fatalf("a JSON task was answered with %q", asked.body)
		}
		if asked.Sticky == "" {
			t.Fatal("the worker did not ask for the run's next task")
		}
		again := h.askSticky(first(), asked.Sticky)
		if schemas.IsJSON(again.body) || again.Token != "token-3" || again.Sticky != asked.Sticky {
			t.Fatalf("a msgpack task was answered with %q", again.body)
		}
	})
}

func TestQueueGroupSpreadsTasks(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		var count [2]atomic.Int32
		for i := range count {
			h.run(nil, "order", func(context.Context, *decider.Task) ([]schemas.Decision, error) {
				count[i].Add(1)
				return nil, nil
			})
		}
		for range 64 {
			h.ask(first())
		}
		h.silence(time.Second)
		a, b := count[0].Load(), count[1].Load()
		if a+b != 64 || a == 0 || b == 0 {
			t.Fatalf("two workers decided %d and %d of 64 tasks", a, b)
		}
	})
}

func TestOneWorkerServesSeveralTypes(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		conn := h.dial()
		w := decider.New(conn, nil)
		for _, typ := range []string{"order", "a.type with > and *"} {
			w.Register(typ, decider.Func(func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
				return []schemas.Decision{decider.Marker(typ, nil)}, nil
			}))
		}
		h.runWorker(conn, w)
		h.announcement("order", 1)
		h.announcement("a.type with > and *", 1)
		task := first()
		for _, typ := range w.Types() {
			task.Type = typ
			r := h.ask(task)
			if m, ok := r.Decisions[0].Attributes.(*schemas.RecordMarker); !ok || m.MarkerName != typ {
				t.Fatalf("type %q was decided by another decider: %+v", typ, r.Decisions)
			}
		}
	})
}

// failures are deciders that do not decide, and what the broker is told of each.
var failures = map[string]struct {
	decide  decider.Func
	cause   schemas.Cause
	reason  string
	details string
}{
	"error": {
		func(context.Context, *decider.Task) ([]schemas.Decision, error) { return nil, errors.New("no luck") },
		schemas.CauseDeciderError, "no luck", "",
	},
	"error beside decisions": {
		func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			return []schemas.Decision{decider.Complete(nil)}, errors.New("no luck")
		},
		schemas.CauseDeciderError, "no luck", "",
	},
	"code that does not fit the history": {
		func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			return nil, fmt.Errorf("%w: event 11 is ship#1, and nothing asks for it", decider.ErrNonDeterministic)
		},
		schemas.CauseNonDeterministic, "the code does not do what the history says: event 11 is ship#1", "",
	},
	"long error": {
		func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			return nil, errors.New(strings.Repeat("é", 3000))
		},
		schemas.CauseDeciderError, "éé", "éé",
	},
	"panic": {
		func(context.Context, *decider.Task) ([]schemas.Decision, error) { panic("boom") },
		schemas.CauseDeciderPanic, "panic: boom", "worker_test.go",
	},
	"error that panics": {
		func(context.Context, *decider.Task) ([]schemas.Decision, error) { return nil, (*rotten)(nil) },
		schemas.CauseDeciderError, "<nil>", "",
	},
	"error that panics when it is unwrapped": { // a nil pointer in an error, the classical mistake
		func(context.Context, *decider.Task) ([]schemas.Decision, error) { return nil, (*fs.PathError)(nil) },
		schemas.CauseDeciderError, "the decider returned a *fs.PathError whose methods panic: runtime error: invalid memory address or nil pointer dereference", "",
	},
	"a retry that no JSON can say": {
		func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			return []schemas.Decision{
				decider.Timer("t", time.Second), decider.Schedule("charge", "pay", nil, decider.Retry(schemas.RetryPolicy{BackoffCoefficient: math.NaN()})),
			}, nil
		},
		schemas.CauseDeciderError, `decision 2: ScheduleActivity "charge": retry.backoffCoefficient: it is NaN; want a number from 1 to 1000`, "",
	},
	"attributes that panic": {
		func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			return []schemas.Decision{schemas.Decide((*rotten)(nil))}, nil
		},
		schemas.CauseDeciderError, "cannot be encoded", "",
	},
	"payload without JSON": {
		func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			return []schemas.Decision{decider.Complete(func() {})}, nil
		},
		schemas.CauseDeciderPanic, "func() as a payload", "",
	},
	"too large": {
		func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			value := schemas.Text(strings.Repeat("x", 200<<10)) // which may not stand elsewhere
			return slices.Repeat([]schemas.Decision{schemas.Decide(&schemas.SetState{Key: "k", Value: value})}, 10), nil
		},
		schemas.CauseDecisionTooLarge, "split it", "",
	},
}

// rotten has methods that panic on nil.
type rotten struct{ text string }

func (r *rotten) Error() string                      { return r.text }
func (r *rotten) DecisionType() schemas.DecisionType { return schemas.DecisionType(r.text) }

func TestFailuresAreReported(t *testing.T) {
	for name, c := range failures {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				h.run(&decider.Options{Concurrency: 1}, "order", c.decide)
				for range 2 { // the second shows that the slot is free again
					r := h.ask(first())
					if r.Error == nil {
						t.Fatalf("got %s, want an error", r.body)
					}
					if r.Token != "token-3" || r.Sticky != "" || len(r.Decisions) != 0 || r.Error.Cause != c.cause ||
						!strings.Contains(r.Error.Reason, c.reason) || !strings.Contains(r.Error.Details, c.details) {
						t.Fatalf("got %+v %+v, want %+v", r.DecisionReply, r.Error, c)
					}
					if len(r.Error.Reason) > 1<<10 || len(r.Error.Details) > 16<<10 {
						t.Fatalf("reason has %d bytes, details %d", len(r.Error.Reason), len(r.Error.Details))
					}
				}
			})
		})
	}
}

func TestGoexitIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		w := h.run(&decider.Options{Concurrency: 1}, "order", goexit)
		for range 2 {
			if r := h.ask(first()); r.Error == nil || !strings.Contains(r.Error.Reason, "Goexit") {
				t.Fatalf("got %s, want an error about Goexit", r.body)
			}
		}
		w.stop()
		if err := w.wait(t); err != nil {
			t.Fatal(err)
		}
	})
}

func TestUnusableTasks(t *testing.T) {
	change := func(f func(*schemas.DecisionTask)) []byte {
		task := first()
		f(task)
		body, err := schemas.MarshalJSON(task)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	packed, err := schemas.Marshal(map[string]any{"token": "tok", "startedId": "three"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		body  []byte
		token string // none: no reply
	}{
		"empty":           {nil, ""},
		"text":            {[]byte("hello"), ""},
		"cut JSON":        {[]byte(`{"token":"tok"`), ""},
		"hostile msgpack": {[]byte{1, 0xdd, 0xff, 0xff, 0xff, 0xff}, ""},
		"no token":        {change(func(t *schemas.DecisionTask) { t.Token = "" }), ""},
		"wrong field":     {[]byte(`{"token":"tok","startedId":"three"}`), "tok"},
		"packed field":    {packed, "tok"},
		"unknown version": {[]byte(`{"v":9,"token":"tok"}`), "tok"},
		"other type":      {change(func(t *schemas.DecisionTask) { t.Type = "other" }), "token-3"},
		"no run":          {change(func(t *schemas.DecisionTask) { t.Run = "" }), "token-3"},
		"no window":       {change(func(t *schemas.DecisionTask) { t.PreviousStartedID = 3 }), "token-3"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				seen := make(chan decider.Observation, 9)
				o := &decider.Options{Observer: func(o decider.Observation) { seen <- o }}
				h.run(o, "order", func(context.Context, *decider.Task) ([]schemas.Decision, error) {
					t.Error("the decider was called")
					return nil, nil
				})
				h.send(ns.Decide("order"), c.body, "one")
				if c.token == "" {
					h.silence(time.Second)
				} else if r := h.receive(); r.Token != c.token || r.Error == nil || r.Error.Cause != schemas.CauseDeciderError {
					t.Fatalf("got %s, want an error with token %q", r.body, c.token)
				}
				if got := <-seen; got.Outcome != decider.OutcomeInvalid || got.Err == nil {
					t.Fatalf("observed %+v", got)
				}
			})
		})
	}
}

func TestTaskWithoutReplySubjectIsNotDecided(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		h.run(nil, "order", func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			t.Error("the decider was called")
			return nil, nil
		})
		body, err := schemas.MarshalJSON(first())
		if err != nil {
			t.Fatal(err)
		}
		if err := h.broker.Publish(ns.Decide("order"), nil, body); err != nil {
			t.Fatal(err)
		}
		h.silence(time.Second)
	})
}

func TestObserverSeesEachTask(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		seen := make(chan decider.Observation, 1)
		h.run(&decider.Options{Observer: func(o decider.Observation) { seen <- o }}, "order",
			func(context.Context, *decider.Task) ([]schemas.Decision, error) {
				time.Sleep(time.Second)
				return []schemas.Decision{decider.Complete(nil)}, nil
			})
		h.ask(first())
		want := decider.Observation{
			Type: "order", WorkflowID: "w", Run: "r", StartedID: 3, Attempt: 1, Took: time.Second, Decisions: 1, Outcome: decider.OutcomeDecided,
		}
		if diff := cmp.Diff(want, <-seen); diff != "" {
			t.Fatalf("observation (-want +got):\n%s", diff)
		}
	})
}

// Who only watches ends neither the process nor what was decided.
func TestObserverMayPanic(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		log, lines := logtest.NewNullLogger()
		h.run(&decider.Options{Logger: log, Observer: func(decider.Observation) { panic("no such gauge") }}, "order", nothing)
		for range 2 {
			h.ask(first()).wantDecisions(t)
		}
		synctest.Wait()
		last := lines.LastEntry()
		if last == nil || last.Level != logrus.ErrorLevel || last.Data["err"] != "no such gauge" || !strings.Contains(fmt.Sprint(last.Data["stack"]), "worker_test.go") {
			t.Fatalf("the last line of the log is %+v, want the panic with its stack", last)
		}
	})
}

func TestRegisterPanics(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		for name, register := range map[string]func(w *decider.Worker){
			"empty type":   func(w *decider.Worker) { w.Register("", decider.Func(nothing)) },
			"control byte": func(w *decider.Worker) { w.Register("a\nb", decider.Func(nothing)) },
			"long type":    func(w *decider.Worker) { w.Register(strings.Repeat("x", 257), decider.Func(nothing)) },
			"nil decider":  func(w *decider.Worker) { w.Register("order", nil) },
			"nil func":     func(w *decider.Worker) { w.Register("order", decider.Func(nil)) },
			"duplicate": func(w *decider.Worker) {
				w.Register("order", decider.Func(nothing))
				w.Register("order", decider.Func(nothing))
			},
		} {
			if got := recovered(func() { register(decider.New(h.broker, nil)) }); !strings.HasPrefix(fmt.Sprint(got), "decider: Register") {
				t.Errorf("%s: got panic %v", name, got)
			}
		}
		if got := recovered(func() { decider.New(nil, nil) }); got == nil {
			t.Error("New with a nil connection did not panic")
		}
	})
}

func recovered(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

func TestRunRefusesInvalidOptions(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		for field, o := range map[string]decider.Options{
			"Namespace":    {Namespace: "a.b"},
			"Identity":     {Identity: strings.Repeat("x", 257)},
			"Concurrency":  {Concurrency: -1},
			"Timeout":      {Timeout: -time.Second},
			"StickyCache":  {StickyCache: -2},
			"StickyBytes":  {StickyBytes: -1},
			"DrainTimeout": {DrainTimeout: -time.Second},
		} {
			w := decider.New(h.broker, &o)
			w.Register("order", decider.Func(nothing))
			if err := w.Run(t.Context()); !errors.Is(err, decider.ErrInvalidOptions) || !strings.Contains(err.Error(), field) {
				t.Errorf("%s: got %v", field, err)
			}
		}
		if err := decider.New(h.broker, nil).Run(t.Context()); !errors.Is(err, decider.ErrNoDeciders) {
			t.Errorf("a worker without deciders: got %v", err)
		}
	})
}

func TestOptionsPrintThemselves(t *testing.T) {
	got := decider.Options{Identity: "me", Timeout: time.Second, DrainTimeout: -1, StickyCache: -1}.String()
	if want := "namespace=default identity=me concurrency=64 timeout=1s sticky=off drain=none"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

// goexit is what testing.T.FailNow does to a decider.
func goexit(context.Context, *decider.Task) ([]schemas.Decision, error) {
	runtime.Goexit()
	return nil, nil
}
