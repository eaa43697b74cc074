package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// playType is the type of workflows that follow a script, playList the task list of their activities.
const (
	playType = "play"
	playList = "play"
)

// script is the input of a workflow that follows a script, act after act. The stores in testdata hold such inputs, so fields
// and words are only ever added.
type script struct {
	Acts []act `json:"acts"`
	// Stubborn goes on when it is asked to end.
	Stubborn bool `json:"stubborn,omitempty"`
	// Pad makes the input large.
	Pad string `json:"pad,omitempty"`
	// Said and Heard are filled in by a run that continues as new: what the chain has said, and the signals that it has
	// received and not used.
	Said  string         `json:"said,omitempty"`
	Heard map[string]int `json:"heard,omitempty"`
}

// act is a line of the script.
type act struct {
	Do doing `json:"do"`
	// Name is an activity's type, the name of a signal, or the reason of a failure.
	Name string `json:"name,omitempty"`
	// Times is how many activities there are, one after the other, or how many signals are waited for. 0 is 1.
	Times int `json:"times,omitempty"`
	// List is where an activity goes. Defaults to playList.
	List string `json:"list,omitempty"`
	// Once: the activity is not idempotent.
	Once bool `json:"once,omitempty"`
	// Retry is how long, in seconds, the broker waits before it repeats a failed activity. 0: it does not.
	Retry float64 `json:"retry,omitempty"`
	// Seconds of a timer.
	Seconds float64 `json:"seconds,omitempty"`
	// Workflow is the other workflow's id, Type and Play what it is if it is a child. Type defaults to playType.
	Workflow string  `json:"workflow,omitempty"`
	Type     string  `json:"type,omitempty"`
	Play     *script `json:"play,omitempty"`
	// Decisions are made by decide, all at once.
	Decisions []schemas.Decision `json:"decisions,omitempty"`
}

// doing is what an act does.
type doing string

const (
	doWork  doing = "work"  // activities
	doSleep doing = "sleep" // a timer, which a signal Name cuts short
	doHear  doing = "hear"  // wait for signals
	doChild doing = "child" // start a child, wait for nothing
	doJoin  doing = "join"  // wait for the end of all children
	doTell  doing = "tell"  // signal another workflow, wait for nothing: that it has arrived wakes nobody
	doMiss  doing = "miss"  // signal a workflow that is not there, wait until that is refused
	doStop  doing = "stop"  // ask another workflow to end, wait for nothing
	doRenew doing = "renew" // continue as new with the acts that are left
	doFail  doing = "fail"
	doHold  doing = "hold" // wait until somebody ends it
	// doDecide makes decisions and waits for nothing; doAwait waits for an event of the type Name.
	doDecide doing = "decide"
	doAwait  doing = "await"
)

// errand is a child, a signal or a cancel request.
type errand struct {
	child bool
	said  string // how it ended; empty while it is open
}

// stage is a run on its way through its script.
type stage struct {
	in      script
	view    *decider.View
	started *schemas.WorkflowStarted
	errands map[string]*errand // by their control: the act
	used    map[string]int     // signals, by name
	seen    map[schemas.EventType]bool
	wanted  []schemas.Decision
	said    string
}

// decidePlay is the decider of plays.
func decidePlay(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
	v, err := task.View(ctx)
	if err != nil {
		return nil, err
	}
	input, err := task.Payload(ctx, v.Input())
	if err != nil {
		return nil, err
	}
	s := &stage{view: v, started: v.Started(), errands: map[string]*errand{}, used: map[string]int{}, seen: map[schemas.EventType]bool{}}
	if err := input.Decode(&s.in); err != nil {
		return nil, err
	}
	if v.CancelRequested() && !s.in.Stubborn {
		return []schemas.Decision{decider.Cancel("as asked")}, nil
	}
	if err := s.fold(ctx, task); err != nil {
		return nil, err
	}
	s.said = s.in.Said
	for i, a := range s.in.Acts {
		if !s.act(i, a) {
			return s.wanted, nil
		}
	}
	return append(s.wanted, decider.Complete(s.said)), nil
}

// fold collects what became of errands.
func (s *stage) fold(ctx context.Context, task *decider.Task) error {
	byEvent := map[int64]*errand{}
	begin := func(id int64, control schemas.Payload, child bool) {
		e := &errand{child: child}
		byEvent[id], s.errands[string(control)] = e, e
	}
	end := func(id int64, format string, args ...any) {
		if e := byEvent[id]; e != nil {
			e.said = fmt.Sprintf(format, args...)
		}
	}
	refuse := func(control schemas.Payload, child bool, cause schemas.Cause) {
		s.errands[string(control)] = &errand{child: child, said: "refused " + string(cause)}
	}
	for e, err := range task.History(ctx) {
		if err != nil {
			return err
		}
		s.seen[e.Type()] = true
		switch a := e.Attributes.(type) {
		case *schemas.ChildScheduled:
			begin(e.ID, a.Control, true)
		case *schemas.SignalExternalScheduled:
			begin(e.ID, a.Control, false)
		case *schemas.CancelExternalScheduled:
			begin(e.ID, a.Control, false)
		case *schemas.ChildSuccess:
			end(a.ScheduledEventID, "completed %s", text(a.Result))
		case *schemas.ChildFailed:
			end(a.ScheduledEventID, "failed %s", a.Reason)
		case *schemas.ChildCanceled:
			end(a.ScheduledEventID, "canceled")
		case *schemas.ChildTerminated:
			end(a.ScheduledEventID, "terminated")
		case *schemas.ChildTimedOut:
			end(a.ScheduledEventID, "timed out")
		case *schemas.ChildStartFailed:
			refuse(a.Control, true, a.Cause)
		case *schemas.SignalExternalFailed:
			refuse(a.Control, false, a.Cause)
		case *schemas.CancelExternalFailed:
			refuse(a.Control, false, a.Cause)
		}
	}
	return nil
}

// want adds decisions. None of them ends the run.
func (s *stage) want(d schemas.Decision) { s.wanted = append(s.wanted, d) }

func (s *stage) say(what string) { s.said += what + ";" }

// act does act i as far as it goes, and tells whether the next one may begin.
func (s *stage) act(i int, a act) (done bool) {
	id := fmt.Sprintf("act-%d", i+1)
	control := schemas.Payload(`"` + id + `"`)
	times := max(a.Times, 1)
	switch a.Do {
	case doWork:
		return s.work(id, a, times)
	case doSleep:
		return s.sleep(id, a)
	case doHear:
		if s.heard(a.Name) < times {
			return false
		}
		s.used[a.Name] += times
		s.say("heard " + a.Name)
	case doChild:
		if s.errands[string(control)] == nil {
			s.want(s.child(control, a))
		}
	case doJoin:
		return s.join(i)
	case doTell:
		s.errand(control, &schemas.SignalExternal{WorkflowID: a.Workflow, SignalName: a.Name, Control: control})
	case doMiss:
		refused := s.errand(control, &schemas.SignalExternal{WorkflowID: a.Workflow, SignalName: a.Name, Control: control})
		if refused == "" {
			return false
		}
		s.say(refused)
	case doStop:
		s.errand(control, &schemas.CancelExternal{WorkflowID: a.Workflow, Control: control})
	case doRenew:
		s.want(s.renew(i))
		return false
	case doDecide:
		if len(s.view.Markers(id)) == 0 {
			s.wanted = append(append(s.wanted, a.Decisions...), decider.Marker(id, nil))
		}
	case doAwait:
		return s.seen[schemas.EventType(a.Name)]
	case doFail:
		s.want(decider.Fail(a.Name, s.said))
		return false
	default: // doHold
		return false
	}
	return true
}

// heard counts the signals of a name that no act has used yet.
func (s *stage) heard(name string) int {
	return s.in.Heard[name] + len(s.view.Signals(name)) - s.used[name]
}

func (s *stage) work(id string, a act, times int) (done bool) {
	list := playList
	if a.List != "" {
		list = a.List
	}
	for n := range times {
		one := fmt.Sprintf("%s.%d", id, n+1)
		status, out, reason := s.view.Activity(one)
		switch {
		case status == 0:
			opts := []decider.ActivityOption{decider.List(list), decider.StartToClose(drover.Unlimited)}
			if a.Once {
				opts = append(opts, decider.NotIdempotent())
			}
			if a.Retry > 0 {
				opts = append(opts, decider.Retry(schemas.RetryPolicy{InitialInterval: schemas.Seconds(a.Retry), MaximumAttempts: 5}))
			}
			s.want(decider.Schedule(one, a.Name, nil, opts...))
			return false
		case !status.Closed():
			return false
		case n < times-1: // the last one speaks for all
		case status == decider.ActivitySucceeded:
			s.say(a.Name + " " + text(out))
		default:
			s.say(a.Name + " " + reason)
		}
	}
	return true
}

// text is what a payload says, or that it is large.
func text(p schemas.Payload) string {
	if _, ok := p.Ref(); ok || len(p) > 4<<10 {
		return "large"
	}
	var said string
	if p.Decode(&said) == nil {
		return said
	}
	return string(p)
}

func (s *stage) sleep(id string, a act) (done bool) {
	cut := a.Name != "" && s.heard(a.Name) > 0
	switch status := s.view.Timer(id); {
	case status == 0:
		s.want(decider.Timer(id, time.Duration(a.Seconds*float64(time.Second))))
		return false
	case status == decider.TimerOpen && !cut:
		return false
	case status == decider.TimerOpen:
		s.want(decider.CancelTimer(id))
		s.used[a.Name]++
		s.say("woken")
	case status == decider.TimerCanceled:
		s.used[a.Name]++
		s.say("woken")
	default:
		s.say("slept")
	}
	return true
}

// child starts a child with the limits of its parent.
func (s *stage) child(control schemas.Payload, a act) schemas.Decision {
	typ := playType
	if a.Type != "" {
		typ = a.Type
	}
	input, err := schemas.JSONPayload(a.Play)
	if err != nil {
		panic(err) // a play always has a JSON form
	}
	return schemas.Decide(&schemas.StartChild{
		WorkflowID: a.Workflow, WorkflowType: typ, Input: input, Control: control,
		ExecutionStartToCloseTimeout: s.started.ExecutionStartToCloseTimeout, TaskStartToCloseTimeout: s.started.TaskStartToCloseTimeout,
	})
}

// join waits for the children of the acts before act n.
func (s *stage) join(n int) (done bool) {
	for i := range n {
		e := s.errands[fmt.Sprintf(`"act-%d"`, i+1)]
		if e == nil && s.in.Acts[i].Do == doChild || e != nil && e.child && e.said == "" {
			return false
		}
	}
	for i, a := range s.in.Acts[:n] {
		if a.Do == doChild {
			s.say("child " + s.errands[fmt.Sprintf(`"act-%d"`, i+1)].said)
		}
	}
	return true
}

// errand sends something to another workflow, once, and returns what came of it up to now.
func (s *stage) errand(control schemas.Payload, a schemas.DecisionAttributes) string {
	if e := s.errands[string(control)]; e != nil {
		return e.said
	}
	s.want(schemas.Decide(a))
	return ""
}

// renew continues with the acts after act i.
func (s *stage) renew(i int) schemas.Decision {
	next := s.in
	next.Acts, next.Said, next.Heard = s.in.Acts[i+1:], s.said+"renewed;", map[string]int{}
	names := map[string]bool{}
	for name := range s.in.Heard {
		names[name] = true
	}
	for _, a := range next.Acts {
		if a.Do == doHear || a.Do == doSleep && a.Name != "" {
			names[a.Name] = true
		}
	}
	for name := range names {
		if n := s.heard(name); n > 0 {
			next.Heard[name] = n
		}
	}
	input, err := schemas.JSONPayload(next)
	if err != nil {
		panic(err) // a play always has a JSON form
	}
	return schemas.Decide(&schemas.ContinueAsNew{Input: input})
}

// errFlaky is how a first attempt of flaky ends.
var errFlaky = errors.New("the first attempt fails")

// props registers the activities of plays.
func props(w *activity.Worker) {
	activity.Register(w, "echo", func(context.Context, struct{}) (string, error) { return "ok", nil })
	activity.Register(w, "large", func(context.Context, struct{}) (string, error) { return strings.Repeat("large ", 60_000), nil })
	activity.Register(w, "flaky", func(ctx context.Context, _ struct{}) (int, error) {
		if n := activity.Info(ctx).Attempt; n > 1 {
			return n, nil
		}
		return 0, errFlaky
	})
}

// playerRole decides over plays and does their activities.
func playerRole(ctx context.Context) error {
	c, err := connectRole(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	deciders := c.Deciders(nil)
	deciders.Register(playType, decider.Func(decidePlay))
	activities := c.Activities(&activity.Options{Lists: []string{playList}})
	props(activities)
	ended := make(chan error, 2)
	go func() { ended <- deciders.Run(ctx) }()
	go func() { ended <- activities.Run(ctx) }()
	return errors.Join(<-ended, <-ended)
}
