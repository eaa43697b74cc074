package e2e

import (
	"os"
	"path/filepath"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// aFlow waits for a signal in the middle, with a lock and a state key.
const aFlow = `name: paper
lock: stack
steps:
- set-sensor pages = 41
- wait for signal go
- return ${entity.sensor.pages}
`

// coordinated makes runs with locks, state keys and everything else that a decider may decide, and a run of a flow.
func (s *studio) coordinated() {
	s.t.Helper()
	decide := func(d ...schemas.Decision) act { return act{Do: doDecide, Decisions: d} }
	await := func(t schemas.EventType) act { return act{Do: doAwait, Name: string(t)} }
	press := decide(decider.AcquireLock("press", decider.Lease(aCentury*time.Second)))
	holder := s.put(playType, acts(press, await(schemas.EventLockAcquired), hearGo), storedRun{
		ID: "lock-held", Waits: "a signal, with a lock", Signal: "go", Said: "heard go;",
	})
	s.has(holder, schemas.EventLockAcquired)
	waiter := s.put(playType, acts(press, await(schemas.EventLockAcquired), echo), storedRun{
		ID: "lock-wanted", Waits: "a lock, which another run has", Said: "echo ok;",
	})
	s.has(waiter, schemas.EventLockRequested)

	key := schemas.SetState{Key: "paper", Value: schemas.Payload(`"A4"`)}
	run := s.put(playType, acts(
		decide(schemas.Decide(&key)), await(schemas.EventStateSet), hearGo,
		decide(schemas.Decide(&schemas.GetState{Key: "paper"})), await(schemas.EventStateRead),
		decide(schemas.Decide(&schemas.ClearState{Key: "paper"})), await(schemas.EventStateCleared),
	), storedRun{ID: "state", Waits: "a signal, with a state key that it has set", Signal: "go", Said: "heard go;"})
	s.has(run, schemas.EventStateSet)

	run = s.put(playType, acts(decide(
		decider.SetAttributes(map[string]string{"color": "green"}), decider.Marker("note", "a marker"),
		schemas.Decide(&schemas.SetRetention{Retention: "max(24h, 5)"}),
		schemas.Decide(&schemas.SetReplayPoint{Name: "here", State: schemas.Payload(`{"x":1}`)}),
		decider.Schedule("unwanted", "echo", nil, decider.List("later")), decider.CancelActivity("unwanted"),
	), await(schemas.EventActivityCancelRequested), hearGo), storedRun{
		ID: "marked", Waits: "a signal, with a marker, a replay point and an activity that is to end", Signal: "go", Said: "heard go;",
	})
	s.has(run, schemas.EventReplayPointSet)

	file := filepath.Join(s.dir, "paper.yaml")
	if err := os.WriteFile(file, []byte(aFlow), 0o600); err != nil {
		s.t.Fatal(err)
	}
	for _, args := range [][]string{{"flow", "deploy", file}, {"start", "paper", "--id", "flow"}} {
		if r := runDrover(s.t, s.url, args...); r.Code != 0 {
			s.t.Fatalf("drover %s: got %d, %s%s", args, r.Code, r.Stdout, r.Stderr)
		}
	}
	s.note(storedRun{ID: "flow", Waits: "a signal, in a deployed flow", Signal: "go", Said: "41"})
	s.has(s.client.Run("flow", ""), schemas.EventStateSet)
}

// lasting makes runs that go on for long: one that is held, and one of an always-on workflow.
func (s *studio) lasting() {
	s.t.Helper()
	ctx, cancel := s.bounded()
	defer cancel()
	held := s.start(playType, "held", acts(hearGo), startOptions{
		Timeout: drover.Unlimited, Continuation: &schemas.ContinuationPolicy{Events: schemas.MinContinuationEvents},
	})
	s.note(storedRun{ID: "held", Waits: "a signal, held by an operator", Signal: "go", Said: "heard go;"})
	if err := held.Hold(ctx, "to look at it"); err != nil {
		s.t.Fatal(err)
	}
	input, err := schemas.JSONPayload(acts(hearGo))
	if err != nil {
		s.t.Fatal(err)
	}
	on := ops.AlwaysOn{Start: schemas.StartRequest{WorkflowID: "always", Type: playType, Input: input}}
	if _, err := s.client.AddAlwaysOn(ctx, on); err != nil {
		s.t.Fatal(err)
	}
	poll.Until(s.t, patience, "the always-on workflow runs", func() bool { return s.count("always", schemas.EventDeciderCompleted) > 0 })
	s.book.AlwaysOn = []string{"always"}
}

// scheduled makes a schedule whose only slot comes after the store was made.
func (s *studio) scheduled() {
	s.t.Helper()
	ctx, cancel := s.bounded()
	defer cancel()
	input, err := schemas.JSONPayload(acts(echo))
	if err != nil {
		s.t.Fatal(err)
	}
	slot := time.Now().Add(laterSeconds * time.Second).Truncate(time.Millisecond)
	made := ops.Schedule{
		ID: "later", Times: &ops.ScheduleTimes{At: []schemas.Timestamp{schemas.At(slot)}},
		CatchUp: schemas.Seconds(aCentury),
		Action:  ops.ScheduleAction{Start: &schemas.StartRequest{WorkflowID: "of-schedule", Type: playType, Input: input}},
	}
	if _, err := s.client.CreateSchedule(ctx, made); err != nil {
		s.t.Fatal(err)
	}
	s.note(storedRun{ID: "of-schedule", Waits: "its schedule, whose slot is overdue", Said: "echo ok;"})
}
