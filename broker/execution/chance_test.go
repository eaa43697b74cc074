package execution

import (
	"math"
	"strconv"

	"github.com/droverhq/drover/schemas"
)

// What can happen in a game. The choices are few and near each other, so that they meet.

func pick[T any](d dice, of ...T) T { return of[d.roll(len(of))] }

func (g *game) start() error {
	return g.play(Start{Request: &schemas.StartRequest{
		WorkflowID: "order", Run: "run.1", Type: "order",
		ExecutionStartToCloseTimeout: pick(g.d, 0, schemas.Unlimited, seconds(3600), math.MaxInt64),
		TaskStartToCloseTimeout:      pick(g.d, 0, schemas.Unlimited, seconds(4)),
		TaskScheduleToStartTimeout:   pick(g.d, 0, 0, seconds(0.15), seconds(7)),
		ActivityDefaults:             pick(g.d, nil, &schemas.ActivityDefaults{List: "main"}, &schemas.ActivityDefaults{List: "main", HeartbeatTimeout: seconds(3), ScheduleToCloseTimeout: seconds(40)}),
		Attributes:                   map[string]string{"k": "v"},
		ChildPolicy:                  pick(g.d, policies...),
		Continuation:                 pick(g.d, nil, &schemas.ContinuationPolicy{}, &schemas.ContinuationPolicy{After: seconds(5)}, &schemas.ContinuationPolicy{After: seconds(1), Events: 20}),
	}})
}

// turn lets one thing happen.
func (g *game) turn() error {
	g.pass()
	if g.lived.Paused != nil && g.d.roll(4) == 0 {
		return g.play(Resume{Request: &schemas.ExecutionRequest{Reason: "seen"}})
	}
	switch g.d.roll(28) {
	case 26, 27:
		return g.play(g.stateNews())
	case 0:
		return g.play(Signal{Name: "x", Input: schemas.Text("in"), RequestID: pick(g.d, "", "", "r1", "r2", "r3", "r4")})
	case 1, 2:
		return g.play(Taken{Identity: "d"})
	case 3, 4, 5:
		return g.decide()
	case 6, 7, 8:
		return g.play(Report{Report: g.report()})
	case 9:
		return g.play(AlarmFired{})
	case 10, 11:
		return g.fireInTime()
	case 12:
		token, _ := g.token()
		return g.beat(&schemas.Heartbeat{Token: token, Details: schemas.Text("half")})
	case 13:
		return g.operate()
	case 14:
		return g.commit()
	case 15:
		return g.snapshot()
	case 16:
		return g.play(g.request())
	case 17:
		return g.play(Child{Report: g.childReport()})
	case 18:
		return g.play(External{Answer: g.externalAnswer()})
	case 19:
		return g.play(g.otherSignal())
	case 20:
		return g.play(g.gone())
	case 23, 24, 25:
		return g.play(g.lockNews())
	default:
		return g.play(Report{Report: g.report()})
	}
}

// pass lets time go by; now and then the clock is set back.
func (g *game) pass() {
	g.now += pick[schemas.Timestamp](g.d, 0, 0, 0, 0, 0, 0, 1, 1_000_000, 1_000_000, 100_000_000, 100_000_000, 1_000_000_000, 1_000_000_000, 5_000_000_000, 60_000_000_000, -2_000_000_000)
}

// fireInTime rings one nanosecond before something is due, and then on the dot until nothing is.
func (g *game) fireInTime() error {
	due := g.lived.NextDue(&g.c)
	if due == 0 || due == math.MaxInt64 {
		return g.play(AlarmFired{})
	}
	if due > g.now {
		g.now = due - 1
		if err := g.play(AlarmFired{}); err != nil {
			return err
		}
	}
	g.now = max(g.now, due)
	// A task that was delayed is late at the earliest one ring after it was put on its list.
	for range 2 {
		if err := g.play(AlarmFired{}); err != nil {
			return err
		}
	}
	if due = g.lived.NextDue(&g.c); due != 0 && due <= g.now {
		return errSpins
	}
	return nil
}

func (g *game) operate() error {
	switch g.d.roll(11) {
	case 5:
		return g.play(Hold{Request: &schemas.ExecutionRequest{RequestID: pick(g.d, "", "h1", "h2")}})
	case 6, 7:
		return g.play(Release{Request: &schemas.ExecutionRequest{RequestID: pick(g.d, "", "h3", "h4")}})
	case 8, 9, 10:
		return g.play(Recycle{})
	case 0, 1:
		return g.play(Pause{Request: &schemas.ExecutionRequest{Reason: "look"}})
	case 2, 3:
		return g.play(Resume{Request: &schemas.ExecutionRequest{Reason: "seen"}})
	default:
		return g.start()
	}
}

func (g *game) decide() error {
	if g.d.roll(4) > 0 {
		if err := g.play(Taken{}); err != nil {
			return err
		}
	}
	switch g.d.roll(20) {
	case 2, 3:
		return g.play(Reply{Reply: &schemas.DecisionReply{Error: &schemas.DecisionError{Reason: "differs", Cause: schemas.CauseNonDeterministic}}})
	case 0:
		return g.play(Refuse{Cause: schemas.CauseInvalidDecision, Reason: "noise"})
	case 1:
		return g.play(Reply{Reply: &schemas.DecisionReply{Error: &schemas.DecisionError{Reason: "broke", Cause: schemas.CauseDeciderPanic}}})
	}
	reply := &schemas.DecisionReply{Context: schemas.Text(strconv.Itoa(g.d.roll(3))), AllOrNothing: g.d.roll(2) == 0, Again: g.d.roll(4) == 0}
	for range g.d.roll(5) {
		reply.Decisions = append(reply.Decisions, schemas.Decide(g.decision()))
	}
	switch g.d.roll(40) {
	case 0:
		reply.Decisions = append(reply.Decisions, schemas.Decide(&schemas.CompleteWorkflow{}))
	case 1:
		reply.Decisions = append(reply.Decisions, schemas.Decide(&schemas.FailWorkflow{Reason: "broke"}))
	case 2:
		reply.Decisions = append(reply.Decisions, schemas.Decide(&schemas.ContinueAsNew{ChildPolicy: pick(g.d, "", "", "", schemas.ChildPolicy("EAT"))}))
	case 3:
		reply.Decisions = append(reply.Decisions, schemas.Decide(&schemas.CancelWorkflow{}))
	}
	return g.play(Reply{Reply: reply, Digest: strconv.Itoa(len(g.turns))})
}

func (g *game) decision() schemas.DecisionAttributes {
	id := pick(g.d, "a", "b", "c", "a", "b", "c", "a", "b", "c", "")
	switch g.d.roll(33) {
	case 29, 30, 31, 32:
		return g.stateDecision(id)
	case 26:
		return &schemas.SetReplayPoint{Name: id, Only: g.d.roll(3) == 0}
	case 27:
		return &schemas.ResetReplayPoints{}
	case 28:
		return &schemas.SetRetention{Retention: pick(g.d, "5", "min(context, 1h) soft 2", "disabled", "parent hash a", "any(1)"), Hash: pick(g.d, "", "", "h")}
	case 22, 23, 24:
		return &schemas.AcquireLock{Lock: id, Scope: pick(g.d, "", "s"), Limit: pick(g.d, 0, 0, 0, 1, 2, -1), Lease: pick(g.d, 0, seconds(5), schemas.Unlimited)}
	case 25:
		return &schemas.ReleaseLock{Lock: id, Scope: pick(g.d, "", "s")}
	case 16, 17:
		return &schemas.StartChild{WorkflowID: id, WorkflowType: pick(g.d, "T", "T", "T", ""), ChildPolicy: pick(g.d, policies...), Tell: g.d.roll(2) == 0}
	case 18:
		return &schemas.StartChild{WorkflowID: pick(g.d, "order", id), WorkflowType: "T"}
	case 19, 20:
		return &schemas.SignalExternal{WorkflowID: id, Run: pick(g.d, "", "", "r"), SignalName: pick(g.d, "s", "s", "s", ""), Tell: g.d.roll(2) == 0}
	case 21:
		return &schemas.CancelExternal{WorkflowID: id, Run: pick(g.d, "", "", "r"), Tell: g.d.roll(2) == 0}
	case 0, 1, 2, 3, 4, 5:
		return g.scheduleActivity(id)
	case 6, 7, 8:
		return &schemas.ScheduleTimer{TimerID: id, StartToFireTimeout: pick(g.d, 0, 1, seconds(1), seconds(5), seconds(60), math.MaxInt64, schemas.Unlimited)}
	case 9:
		return &schemas.CancelTimer{TimerID: id}
	case 10, 11:
		return &schemas.RequestCancelActivity{ActivityID: id}
	case 12:
		return &schemas.RecordMarker{MarkerName: id}
	case 13, 14:
		return &schemas.SetAttributes{Attributes: map[string]string{"k": id}}
	default:
		marker := &schemas.RecordMarker{MarkerName: "m"}
		return pick[schemas.DecisionAttributes](g.d, marker, marker, marker, marker, &schemas.UnknownDecision{Type: "Dance"},
			&schemas.CancelWorkflow{}, &schemas.StartChild{WorkflowID: "c"}, nil)
	}
}

func (g *game) scheduleActivity(id string) *schemas.ScheduleActivity {
	limit := func() schemas.Duration {
		return pick(g.d, 0, 0, 0, seconds(1), seconds(5), seconds(60), schemas.Unlimited, math.MaxInt64)
	}
	a := &schemas.ScheduleActivity{
		ActivityID: id, ActivityType: "work", List: pick(g.d, "PCI", "PCI", "PCI", "PCI", "", "a.b"), NotIdempotent: g.d.roll(2) == 1,
		ScheduleToStartTimeout: limit(), StartToCloseTimeout: limit(), ScheduleToCloseTimeout: limit(), HeartbeatTimeout: limit(),
		StartDelay: pick(g.d, 0, 0, 0, seconds(1), seconds(30), schemas.Unlimited),
	}
	switch g.d.roll(4) {
	case 0:
		a.Retry = &schemas.RetryPolicy{MaximumAttempts: g.d.roll(4), NonRetryable: []string{"HEARTBEAT"}}
	case 1:
		a.Retry = &schemas.RetryPolicy{
			InitialInterval: limit(), MaximumInterval: limit(), BackoffCoefficient: pick(g.d, 0, 0.5, 1, 10, 1000, -1, math.NaN()),
		}
	}
	return a
}

// token is that of an open activity, which it returns as well, or of one that was, or none.
func (g *game) token() (string, *Activity) {
	open := g.lived.OpenActivities()
	if len(open) == 0 || g.d.roll(8) == 0 {
		return pick(g.d, "", "noise", "run.1.5.1", "run.2.5.1", Token("run.1", int64(g.d.roll(60)), g.d.roll(3))), nil
	}
	a := open[g.d.roll(len(open))]
	return Token("run.1", a.ScheduledID, a.Attempt+pick(g.d, 0, 0, 0, 0, 0, 0, 0, 0, -1, 1)), a
}

// gone says that a worker does not answer, rightly or not.
func (g *game) gone() Message {
	_, a := g.token()
	if a == nil {
		return Gone{Run: "run.1", ScheduledID: 5, Attempt: 1}
	}
	return Gone{Run: pick(g.d, "run.1", "run.1", "run.9"), ScheduledID: a.ScheduledID, Attempt: max(1, a.Attempt-g.d.roll(2))}
}

func (g *game) report() *schemas.Report {
	token, a := g.token()
	r := &schemas.Report{Token: token, Identity: "w", Reason: pick(g.d, "", "broke")}
	r.Kind = pick(g.d, schemas.ReportStarted, schemas.ReportStarted, schemas.ReportSuccess, schemas.ReportFailed, schemas.ReportFailed,
		schemas.ReportCanceled, schemas.ReportBegin, schemas.ReportBegin, schemas.ReportBegin, schemas.ReportLost, schemas.ReportReturned, "noise")
	r.Offered = g.d.roll(4) == 0
	switch r.Kind {
	case schemas.ReportStarted, schemas.ReportBegin, schemas.ReportLost:
		r.TaskSequence, r.Nonce, r.Redelivered = uint64(g.d.roll(3)), pick(g.d, "n1", "n2", "n3", ""), g.d.roll(2) == 1
		if a != nil && a.Started != 0 { // the same message again, perhaps to the same worker
			r.TaskSequence, r.Nonce = pick(g.d, a.TaskSequence, a.TaskSequence, r.TaskSequence), pick(g.d, a.Nonce, r.Nonce)
		}
	default:
		r.Elapsed = pick(g.d, 0, 0, 1, seconds(2), seconds(3600), math.MaxInt64, schemas.Unlimited)
	}
	return r
}
