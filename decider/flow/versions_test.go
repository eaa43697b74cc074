package flow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/schemas"
	"pgregory.net/rapid"
)

// shelf has the versions of one flow.
type shelf struct {
	all     map[string]*model.Definition
	current string
	lost    bool // nothing can be read
}

var errLost = errors.New("the bucket cannot be read")

func (s *shelf) Definition(_ context.Context, _, _, version string) (*model.Definition, string, error) {
	if version == "" {
		version = s.current
	}
	d := s.all[version]
	switch {
	case s.lost:
		return nil, "", errLost
	case d == nil:
		return nil, "", fmt.Errorf("%w: version %s", ErrNoDefinition, version)
	}
	return d, version, nil
}

// house is a service with the runs of one workflow: its root, the inner ones, and those that repeat it.
type house struct {
	t      *rapid.T
	shelf  *shelf
	plans  map[string][]*planned
	d      *Decider
	now    time.Time
	runs   []*tenant // that are open
	serial int

	version   string           // which the workflow began with
	duties    map[string]*duty // of that
	succeeded map[string]bool
	failed    map[string]bool // and nobody has tried again
	root      *tenant
}

// newHouse has one version deployed, and a run of it.
func newHouse(t *rapid.T) *house {
	h := &house{
		t: t, shelf: &shelf{all: map[string]*model.Definition{}}, plans: map[string][]*planned{}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		succeeded: map[string]bool{}, failed: map[string]bool{},
	}
	h.restart()
	h.deploy()
	h.root = h.begin(nil, 0, "", &schemas.WorkflowStarted{})
	return h
}

// tenant is a run.
type tenant struct {
	id, place string
	parent    *tenant
	asked     int64 // the event of the parent's that asked for it
	events    []schemas.Event
	previous  int64
	seen      int // events that a decision has seen
	context   schemas.Payload
	open      map[int64]string // activities, timers and inner runs that have no answer yet, by event: what they are
	closed    schemas.DecisionAttributes
	ended     bool // by force
}

func (r *tenant) add(h *house, a schemas.Attributes) int64 {
	id := int64(len(r.events)) + 1
	r.events = append(r.events, schemas.Event{ID: id, Time: schemas.At(h.now), Attributes: a})
	return id
}

func (h *house) deploy() {
	version := string(rune('a' + len(h.plans)))
	count := 0
	plan := drawPlan(h.t, version, 0, &count)
	d, err := Parse("flow", []byte(planText(plan)), nil)
	if err != nil {
		h.t.Fatalf("%v in\n%s", err, planText(plan))
	}
	h.shelf.all[d.Version()], h.shelf.current, h.plans[d.Version()] = d, d.Version(), plan
}

func (h *house) restart() {
	h.d = New(h.shelf, &Options{List: "main", Random: func() float64 { return 0.5 }})
}

func (h *house) begin(parent *tenant, asked int64, place string, started *schemas.WorkflowStarted) *tenant {
	h.serial++
	r := &tenant{id: fmt.Sprint("r", h.serial), place: place, parent: parent, asked: asked, open: map[int64]string{}}
	started.WorkflowID, started.Run, started.WorkflowType = "w", r.id, "flow"
	r.add(h, started)
	h.runs = append(h.runs, r)
	return r
}

// decide shows a run what is new, and does what it decides.
func (h *house) decide(r *tenant) {
	r.add(h, &schemas.DeciderScheduled{})
	started := r.add(h, &schemas.DeciderStarted{})
	full := rapid.IntRange(0, 9).Draw(h.t, "full") == 0
	ask := func() ([]schemas.Decision, schemas.Payload, error) {
		task, err := decider.NewTask(schemas.DecisionTask{
			Namespace: "default", WorkflowID: "w", Run: r.id, Type: "flow", Attempt: 1, Context: r.context,
			PreviousStartedID: r.previous, StartedID: started, Events: r.events[r.previous:], SuggestContinueAsNew: full,
		})
		if err != nil {
			h.t.Fatal(err)
		}
		decisions, err := h.d.Decide(h.t.Context(), task)
		return decisions, task.Context(), err
	}
	if rapid.IntRange(0, 9).Draw(h.t, "crash") == 0 { // before the answer was committed; what cannot be read changes nothing
		h.restart()
		h.shelf.lost = rapid.Bool().Draw(h.t, "lost")
		if decisions, _, err := ask(); h.shelf.lost && (err == nil || len(decisions) > 0) {
			h.t.Fatalf("no version can be read, and run %s decides %v", r.id, decisions)
		}
		h.shelf.lost = false
		h.restart()
	}
	decisions, after, err := ask()
	if err != nil {
		h.t.Fatal(err)
	}
	if h.version == "" {
		h.version, h.duties = h.shelf.current, map[string]*duty{}
		duties(h.plans[h.version], "", nil, h.duties)
	}
	r.seen = len(r.events)
	r.previous, r.context = started, after
	r.add(h, &schemas.DeciderCompleted{ExecutionContext: after})
	if n := len(decisions); n > 0 && decisions[n-1].Closes() && rapid.IntRange(0, 4).Draw(h.t, "unseen") == 0 {
		r.add(h, &schemas.Signal{SignalName: "noise"})
		r.add(h, &schemas.WorkflowCloseFailed{Decision: decisions[n-1].Type(), Cause: schemas.CauseUnhandledDecision})
		return
	}
	for _, d := range decisions {
		h.do(r, d)
	}
}

func (h *house) do(r *tenant, d schemas.Decision) {
	switch a := d.Attributes.(type) {
	case *schemas.ScheduleActivity:
		key := a.ActivityType + r.place
		h.called(key)
		r.open[r.add(h, &schemas.ActivityScheduled{ActivityID: a.ActivityID, ActivityType: a.ActivityType})] = key
	case *schemas.ScheduleTimer:
		r.open[r.add(h, &schemas.TimerScheduled{TimerID: a.TimerID})] = "timer " + a.TimerID
	case *schemas.StartChild:
		id := noted(a.Control)
		asked := r.add(h, &schemas.ChildScheduled{Control: a.Control})
		r.open[asked] = "child"
		h.begin(r, asked, r.place+id[strings.LastIndex(id, "/"):], &schemas.WorkflowStarted{
			Input: a.Input, ParentWorkflowExecution: &schemas.Execution{WorkflowID: "w", Run: r.id},
		})
	case *schemas.ContinueAsNew:
		h.leave(r, a)
		next := h.begin(r.parent, r.asked, r.place, &schemas.WorkflowStarted{Input: a.Input, ContinuedExecutionRun: r.id})
		if r == h.root {
			h.root = next
		}
	case *schemas.CompleteWorkflow:
		h.leave(r, a)
		h.tell(r, &schemas.ChildSuccess{ScheduledEventID: r.asked, Result: a.Result})
	case *schemas.FailWorkflow:
		h.leave(r, a)
		h.tell(r, &schemas.ChildFailed{ScheduledEventID: r.asked, Reason: a.Reason, Details: a.Details})
	default:
		h.t.Fatalf("run %s decides %s %+v, which no such flow does", r.id, d.Type(), a)
	}
}

func (h *house) leave(r *tenant, a schemas.DecisionAttributes) {
	for _, what := range r.open {
		if !strings.HasPrefix(what, "timer ") {
			h.t.Fatalf("run %s ends by %+v, and %s is under way", r.id, a, what)
		}
	}
	r.closed = a
	h.runs = slices.DeleteFunc(h.runs, func(o *tenant) bool { return o == r })
}

func (h *house) tell(r *tenant, a schemas.Attributes) {
	if r.parent != nil {
		delete(r.parent.open, r.asked)
		r.parent.add(h, a)
	}
}

// called judges that an activity is asked for: it is of the version that the workflow began with, in its turn, and not done yet.
func (h *house) called(key string) {
	d := h.duties[key]
	switch {
	case d == nil:
		h.t.Fatalf("activity %s is none of the version that the run began with:\n%s", key, planText(h.plans[h.version]))
	case h.succeeded[key]:
		h.t.Fatalf("activity %s is done twice in\n%s", key, planText(h.plans[h.version]))
	case h.failed[key] && !d.again:
		h.t.Fatalf("activity %s may not run again, and does in\n%s", key, planText(h.plans[h.version]))
	}
	for _, before := range d.after {
		if !h.succeeded[before] {
			h.t.Fatalf("activity %s is asked for, and %s before it is not done in\n%s", key, before, planText(h.plans[h.version]))
		}
	}
	delete(h.failed, key)
}

// happens lets something come in for a run.
func (h *house) happens(r *tenant, event int64) {
	what := r.open[event]
	delete(r.open, event)
	if id, ok := strings.CutPrefix(what, "timer "); ok {
		r.add(h, &schemas.TimerExpired{TimerID: id})
		return
	}
	if rapid.IntRange(0, 5).Draw(h.t, "fails") == 0 {
		h.failed[what] = true
		r.add(h, &schemas.ActivityFailed{ScheduledEventID: event, Reason: "boom"})
		return
	}
	h.succeeded[what] = true
	r.add(h, &schemas.ActivitySuccess{ScheduledEventID: event})
}

// turn does one thing of those that can be done now; false if the workflow has ended.
func (h *house) turn() bool {
	if h.root.closed != nil || h.root.ended {
		return false
	}
	var can []func()
	for _, r := range h.runs {
		if len(r.events) > r.seen+1 || r.previous == 0 {
			can = append(can, func() { h.decide(r) }, func() { h.decide(r) })
		}
		for _, event := range slices.Sorted(maps.Keys(r.open)) {
			if r.open[event] != "child" {
				can = append(can, func() { h.happens(r, event) })
			}
		}
	}
	if len(can) == 0 {
		h.t.Fatalf("nothing can happen any more, and the workflow has not ended:\n%s", planText(h.plans[h.version]))
	}
	switch rapid.IntRange(0, 99).Draw(h.t, "rare") {
	case 0, 1, 2, 3, 4, 5:
		h.restart()
	case 6, 7, 8:
		if len(h.plans) < 4 {
			h.deploy()
		}
	case 9:
		if quiet := len(h.root.events) <= h.root.seen+1; quiet && h.root.previous > 0 && h.version != "" {
			h.terminate()
			return false
		}
	}
	h.now = h.now.Add(time.Second)
	can[rapid.IntRange(0, len(can)-1).Draw(h.t, "which")]()
	return true
}

// terminate ends the workflow and its inner runs, and what they have begun: what it came to, nobody knows.
func (h *house) terminate() {
	h.root.ended = true
	for _, r := range h.runs {
		for _, what := range r.open {
			if what != "child" && !strings.HasPrefix(what, "timer ") {
				h.failed[what] = true
			}
		}
	}
	h.runs = nil
}

// stands tells whether the workflow may be resumed, and if not why.
func (h *house) stands() string {
	if h.root.ended {
		for _, what := range h.root.open {
			if what == "child" {
				return "an inner run was ended in its middle"
			}
		}
	}
	for key := range h.failed {
		if !h.duties[key].again {
			return key + " may not run again"
		}
	}
	return ""
}

// repeat replays the workflow from where it stood; false if that is refused.
func (h *house) repeat() bool {
	old := h.root
	task, err := decider.NewTask(schemas.DecisionTask{
		Namespace: "default", WorkflowID: "w", Run: old.id, Type: "flow", Attempt: 1, Context: old.context, Replay: &schemas.ReplayQuestion{From: "end"},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	answer, err := h.d.Replay(h.t.Context(), task, schemas.ReplayQuestion{From: "end"})
	if err != nil {
		h.t.Fatal(err)
	}
	if why := h.stands(); (answer.Refused != "") != (why != "") {
		h.t.Fatalf("the answer to a replay is %q, and what stands in its way is %q, in\n%s\nfailed: %v", answer.Refused, why, planText(h.plans[h.version]), h.failed)
	}
	if answer.Refused != "" {
		return false
	}
	h.root = h.begin(nil, 0, "", &schemas.WorkflowStarted{Input: answer.Input, Replays: &schemas.ReplayOf{Run: old.id, From: "end"}})
	return true
}

// A run goes on by the version that it began with, whatever is deployed, through restarts, refused ends, full histories and replays: no
// activity of it is done twice, left out, or done before its turn; and what may not run again is refused before a run begins.
func TestRunsKeepTheirVersion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHouse(t)
		for range 6 {
			for h.turn() {
			}
			if _, ok := h.root.closed.(*schemas.CompleteWorkflow); ok {
				if len(h.succeeded) != len(h.duties) {
					t.Fatalf("the workflow has completed, and of %v only %v is done in\n%s", slices.Sorted(maps.Keys(h.duties)), slices.Sorted(maps.Keys(h.succeeded)), planText(h.plans[h.version]))
				}
				return
			}
			if h.root.closed != nil && len(h.failed) == 0 {
				t.Fatalf("the workflow has ended by %+v, and nothing has failed in\n%s", h.root.closed, planText(h.plans[h.version]))
			}
			if !h.repeat() {
				return
			}
		}
	})
}
