package machine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/workflow/internal/machine"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// tape is a run, its history, and how decisions about it are made.
type tape struct {
	t      *testing.T
	code   func(m *machine.Machine)
	m      *machine.Machine
	events []schemas.Event
	fed    int
	live   machine.Live
}

func newTape(t *testing.T, code func(m *machine.Machine)) *tape {
	p := &tape{t: t, code: code, live: machine.Live{
		Context: t.Context(), Rest: func(do func()) { do() }, First: time.Second, Others: 10 * time.Millisecond, Quick: 200 * time.Millisecond,
	}}
	p.add(&schemas.WorkflowStarted{})
	p.rebuild()
	t.Cleanup(func() { _ = p.m.Close() })
	return p
}

// rebuild has another worker go on.
func (p *tape) rebuild() {
	if p.m != nil {
		_ = p.m.Close()
	}
	p.fed, p.m = 0, machine.New(func(m *machine.Machine, _ *schemas.WorkflowStarted) func() schemas.Decision {
		p.code(m)
		return func() schemas.Decision { return decider.Complete("done") }
	}, schemas.Execution{WorkflowID: "w", Run: "r"})
}

func (p *tape) add(all ...schemas.Attributes) {
	for _, a := range all {
		p.events = append(p.events, schemas.Event{
			ID: int64(len(p.events) + 1), Time: schemas.At(time.Now()), Attributes: a,
		})
	}
}

// try makes a decision, which comes into the history.
func (p *tape) try() (said string, err error) {
	p.add(&schemas.DeciderScheduled{}, &schemas.DeciderStarted{})
	p.live.Started, p.live.At = int64(len(p.events)), schemas.At(time.Now())
	for ; p.fed < len(p.events); p.fed++ {
		if err := p.m.Add(p.events[p.fed]); err != nil {
			return "", err
		}
	}
	decisions, again, err := p.m.Decide(p.live)
	if err != nil {
		p.add(&schemas.DeciderFailed{StartedEventID: p.live.Started})
		return "", err
	}
	p.add(&schemas.DeciderCompleted{StartedEventID: p.live.Started})
	completed := int64(len(p.events))
	var all []string
	for _, d := range decisions {
		switch a := d.Attributes.(type) {
		case *schemas.RecordMarker:
			p.add(&schemas.Marker{MarkerName: a.MarkerName, Details: a.Details, DeciderCompletedEventID: completed})
			all = append(all, a.MarkerName+" "+string(a.Details))
		case *schemas.ScheduleActivity:
			p.add(&schemas.ActivityScheduled{ActivityID: a.ActivityID, DeciderCompletedEventID: completed})
			all = append(all, a.ActivityID)
		case *schemas.CompleteWorkflow:
			p.add(&schemas.WorkflowSuccess{DeciderCompletedEventID: completed})
			all = append(all, "done")
		}
	}
	if again {
		all = append(all, "again")
	}
	return strings.Join(all, ", "), nil
}

// wants makes a decision, and says what is expected of it.
func (p *tape) wants(want string) {
	p.t.Helper()
	if got, err := p.try(); got != want || err != nil {
		p.t.Errorf("decided %q, %v; want %q", got, err, want)
	}
}

// fails makes a decision that is to fail.
func (p *tape) fails(want ...string) {
	p.t.Helper()
	got, err := p.try()
	for _, part := range want {
		if err == nil || !strings.Contains(err.Error(), part) {
			p.t.Errorf("decided %q, %v; want an error with %q", got, err, part)
		}
	}
	p.rebuild()
}

func ok(v any) (*machine.Record, error) {
	return &machine.Record{OK: json.RawMessage(fmt.Sprint(v))}, nil
}

// after is a step that takes some time.
func after(d time.Duration) func(context.Context, string) (*machine.Record, error) {
	return func(ctx context.Context, _ string) (*machine.Record, error) {
		select {
		case <-time.After(d):
			return ok(1)
		case <-ctx.Done():
			return &machine.Record{Fault: "its context ended"}, nil
		}
	}
}

func do(m *machine.Machine, name string, do func(context.Context, string) (*machine.Record, error)) machine.Outcome {
	f := m.Do(m.Root(), &machine.Step{Of: name, Do: do})
	m.Wait(name, f)
	return f.Outcome()
}

func quick(m *machine.Machine, name string, do func(context.Context, string) (*machine.Record, error)) machine.Outcome {
	f := m.Do(m.Root(), &machine.Step{Of: name, Quick: true, Do: do})
	m.Wait(name, f)
	return f.Outcome()
}

// What a step has returned is in the history before the code goes on, and another worker has it
// from there.
func TestStepIsStoredFirst(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		calls := 0
		p := newTape(t, func(m *machine.Machine) {
			for n := range 2 {
				o := do(m, "a", func(context.Context, string) (*machine.Record, error) { calls++; return ok(n) })
				if string(o.Result) != fmt.Sprint(n) {
					t.Errorf("got %+v", o)
				}
			}
		})
		p.wants(`a#1 {"ok":0}, again`)
		p.rebuild()
		p.wants(`a#2 {"ok":1}, again`)
		p.wants("done")
		if calls != 2 {
			t.Errorf("%d calls", calls)
		}
		p.rebuild()
		for _, e := range p.events {
			if err := p.m.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.m.Flush(); err != nil {
			t.Error(err)
		}
	})
}

// A step does not hold back what was asked for, and begins when that is stored.
func TestStepWaitsForWhatWasAsked(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		p := newTape(t, func(m *machine.Machine) {
			m.Once("id", func() schemas.Payload { return schemas.Payload("7") })
			m.Schedule(m.Root(), &schemas.ScheduleActivity{ActivityType: "ship"})
			do(m, "a", after(0))
		})
		p.wants("id#1 7, ship#1, again")
		p.live.NoSteps = true
		p.wants("again")
		p.live.NoSteps = false
		p.wants(`a#1 {"ok":1}, again`)
		p.wants("done")
	})
}

// A long step is carried over decisions, beside others that come and go. features#168, sdk-go#1706.
func TestStepIsCarriedOver(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		p := newTape(t, func(m *machine.Machine) {
			long := m.Do(m.Root(), &machine.Step{Of: "long", Do: after(2500 * time.Millisecond)})
			do(m, "short", after(300*time.Millisecond))
			m.Wait("long", long)
		})
		p.wants(`short#1 {"ok":1}, again`)
		p.wants("again")
		p.wants("again")
		p.wants(`long#1 {"ok":1}, again`)
		p.wants("done")
	})
}

// Steps that end at about the same time are recorded together; who has time waits for all.
func TestStepsBesideEachOther(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		p := newTape(t, func(m *machine.Machine) {
			var all []*machine.Future
			for n := range 3 {
				all = append(all, m.Do(m.Root(), &machine.Step{Of: "a", Do: after(time.Duration(n*n*2) * time.Millisecond)}))
			}
			all = append(all, m.Do(m.Root(), &machine.Step{Of: "b", Do: after(900 * time.Millisecond)}))
			for _, f := range all {
				m.Wait("all", f)
			}
		})
		together := `a#1 {"ok":1}, a#2 {"ok":1}, a#3 {"ok":1}`
		p.wants(together + ", again")
		p.wants(`b#1 {"ok":1}, again`)
		p.events, p.live.Others = p.events[:1], time.Second
		p.rebuild()
		p.wants(together + `, b#1 {"ok":1}, again`)
	})
}

// The context of a step ends after a minute. One that does not care is given up.
func TestStepThatTakesTooLong(t *testing.T) {
	for name, does := range map[string]func(context.Context, string) (*machine.Record, error){
		"obeys": after(time.Hour),
		"is deaf": func(context.Context, string) (*machine.Record, error) {
			time.Sleep(2 * time.Minute)
			return ok(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				began := time.Now()
				p := newTape(t, func(m *machine.Machine) {
					if o := do(m, "a", does); o.Kind != machine.Failed || !strings.Contains(o.Reason, "use an activity") {
						t.Errorf("got %+v", o)
					}
				})
				for said := "again"; said == "again"; said, _ = p.try() { //nolint:revive // until something else is said
				}
				if took := time.Since(began); took < time.Minute || took > 63*time.Second {
					t.Errorf("it took %v", took)
				}
				p.wants("done")
				if err := p.m.Close(); (err != nil) != (name == "is deaf") {
					t.Errorf("once it is closed: %v", err)
				}
				time.Sleep(2 * time.Minute)
			})
		})
	}
}

// Workers that keep no run begin a step anew in each decision, and not for ever.
func TestStepThatNobodyKeeps(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		calls := 0
		p := newTape(t, func(m *machine.Machine) {
			o := do(m, "a", func(ctx context.Context, name string) (*machine.Record, error) {
				calls++
				return after(time.Hour)(ctx, name)
			})
			if !strings.Contains(o.Reason, "use an activity") {
				t.Errorf("got %+v", o)
			}
		})
		p.live.First = 8 * time.Second
		for said := "again"; said == "again"; said, _ = p.try() {
			p.rebuild()
		}
		p.wants("done")
		if calls != 8 {
			t.Errorf("%d calls in a minute, want 8", calls)
		}
	})
}

// A step whose scope is canceled ends, and its future is ready when it has; one that has not begun
// does not begin.
func TestCanceledStep(t *testing.T) {
	for name, carried := range map[string]bool{"runs": true, "waits": false} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				p := newTape(t, func(m *machine.Machine) {
					if o := do(m, "a", after(time.Hour)); o.Kind != machine.Canceled {
						t.Errorf("got %+v", o)
					}
				})
				p.live.NoSteps = !carried
				p.wants("again")
				p.live.NoSteps = false
				if p.add(&schemas.WorkflowCancelRequested{}); !carried {
					p.rebuild()
				}
				p.wants(`a#1 {"canceled":true}, again`)
				p.rebuild()
				p.wants("done")
			})
		})
	}
}

// A mistake in a step fails the decision, and what others have done is recorded before.
func TestMistakesInSteps(t *testing.T) {
	boom := errors.New("it has no JSON form")
	for name, does := range map[string]func(*machine.Machine) (*machine.Record, error){
		"step a#1 panicked at step_test.go": func(*machine.Machine) (*machine.Record, error) { panic("boom") },
		"step a#1 was ended by":             func(*machine.Machine) (*machine.Record, error) { runtime.Goexit(); return nil, nil },
		"no JSON form":                      func(*machine.Machine) (*machine.Record, error) { return nil, boom },
		"a step cannot use the workflow": func(m *machine.Machine) (*machine.Record, error) {
			do(m, "inner", after(0))
			return ok(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				broken, calls := true, 0
				p := newTape(t, func(m *machine.Machine) {
					other := m.Do(m.Root(), &machine.Step{Of: "b", Do: func(context.Context, string) (*machine.Record, error) {
						calls++
						return ok(2)
					}})
					do(m, "a", func(context.Context, string) (*machine.Record, error) {
						if broken {
							return does(m)
						}
						return ok(1)
					})
					m.Wait("b", other)
				})
				p.wants(`b#1 {"ok":2}, again`)
				p.fails(strings.Split(name, " at ")...)
				broken = false
				p.wants(`a#1 {"ok":1}, again`)
				p.wants("done")
				if calls != 1 {
					t.Errorf("the other one was called %d times", calls)
				}
			})
		})
	}
}

// A run that leaves the memory ends its steps.
func TestStepsOfARunThatLeaves(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		var ended time.Time
		p := newTape(t, func(m *machine.Machine) {
			do(m, "a", func(ctx context.Context, _ string) (*machine.Record, error) {
				<-ctx.Done()
				time.Sleep(100 * time.Millisecond)
				ended = time.Now()
				return ok(1)
			})
		})
		p.wants("again")
		if err := p.m.Close(); err != nil || !ended.Equal(time.Now()) {
			t.Errorf("closed at %v: %v; the step has ended at %v", time.Now(), err, ended)
		}
	})
}

// Quick steps are recorded with what the code asks for next, and a replay has them in the same turn.
// Once they have taken their time, those before are stored first.
func TestQuickSteps(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		var calls []string
		p := newTape(t, func(m *machine.Machine) {
			for n := range 5 {
				o := quick(m, "q", func(_ context.Context, name string) (*machine.Record, error) {
					calls = append(calls, name)
					time.Sleep(70 * time.Millisecond)
					return ok(n)
				})
				if string(o.Result) != fmt.Sprint(n) {
					t.Errorf("got %+v", o)
				}
			}
			call(m, "ship")
		})
		p.wants(`q#1 {"ok":0,"quick":true}, q#2 {"ok":1,"quick":true}, q#3 {"ok":2,"quick":true}, again`)
		p.rebuild()
		p.wants(`q#4 {"ok":3}, again`)
		p.wants(`q#5 {"ok":4,"quick":true}, ship#1`)
		p.add(&schemas.Signal{})
		p.rebuild()
		p.wants("")
		if want := []string{"q#1", "q#2", "q#3", "q#4", "q#5"}; !slices.Equal(calls, want) {
			t.Errorf("called %v", calls)
		}
	})
}

// A quick step that is not quick is told so.
func TestQuickStepThatTakesTooLong(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		p := newTape(t, func(m *machine.Machine) {
			if o := quick(m, "q", after(time.Second)); !strings.Contains(o.Reason, "leave Quick out") {
				t.Errorf("got %+v", o)
			}
		})
		if said, err := p.try(); !strings.HasSuffix(said, `"quick":true}, done`) || err != nil {
			t.Errorf("decided %s, %v", said, err)
		}
	})
}

// Code that asks for a step where the history has something else is told of both.
func TestStepThatIsNew(t *testing.T) {
	err := replay(t, decided(&schemas.ActivityScheduled{ActivityID: "ship#1", DeciderCompletedEventID: 4}),
		func(m *machine.Machine) { do(m, "new", after(0)) })
	for _, part := range []string{"ship#1", "new#1"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not tell %q", err, part)
		}
	}
}
