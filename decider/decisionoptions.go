package decider

import (
	"time"

	"github.com/droverhq/drover/schemas"
)

// What the options of a decision may be. An option that several decisions know is one function, and
// its result says where it may be used: a wrong place does not compile. Durations of 0 are as good
// as not given; where a default is to be lifted, [schemas.Unlimited] as a [time.Duration] says that
// there is no limit.
type (
	// ActivityOption changes how an activity is scheduled. What no option sets comes from the
	// defaults of a registered type, then from those of the run, then from the broker. A duration
	// of 0 sets nothing, and one of [schemas.Unlimited] is none.
	ActivityOption interface {
		forActivity(*schemas.ScheduleActivity)
	}
	// TimerOption adds to a timer.
	TimerOption interface{ forTimer(*schemas.ScheduleTimer) }
	// ChildOption changes how a child is started. What no option sets comes from the defaults of a
	// registered type, or else from the broker, as with any other start; nothing is inherited from
	// the parent.
	ChildOption interface{ forChild(*schemas.StartChild) }
	// ContinueOption changes the run that follows this one. What no option sets is as in this one.
	ContinueOption interface {
		forContinue(*schemas.ContinueAsNew)
	}
	// ExternalOption adds to a signal or a cancel request to another workflow.
	ExternalOption interface {
		forSignal(*schemas.SignalExternal)
		forCancel(*schemas.CancelExternal)
	}

	// WorkflowOption is for children and for the run that follows.
	WorkflowOption interface {
		ChildOption
		ContinueOption
	}
	// SharedOption is for activities and for workflows.
	SharedOption interface {
		ActivityOption
		WorkflowOption
	}
	// TellOption is for children and for what is sent to other workflows.
	TellOption interface {
		ChildOption
		ExternalOption
	}
	// ControlOption is for whatever is decided under a name and answered later.
	ControlOption interface {
		ActivityOption
		TimerOption
		ChildOption
		ExternalOption
	}
)

// option holds what an option does to each of the decisions that it is for.
type option struct {
	activity func(*schemas.ScheduleActivity)
	timer    func(*schemas.ScheduleTimer)
	child    func(*schemas.StartChild)
	next     func(*schemas.ContinueAsNew)
	signal   func(*schemas.SignalExternal)
	cancel   func(*schemas.CancelExternal)
}

func (o option) forActivity(a *schemas.ScheduleActivity) { o.activity(a) }
func (o option) forTimer(t *schemas.ScheduleTimer)       { o.timer(t) }
func (o option) forChild(c *schemas.StartChild)          { o.child(c) }
func (o option) forContinue(c *schemas.ContinueAsNew)    { o.next(c) }
func (o option) forSignal(s *schemas.SignalExternal)     { o.signal(s) }
func (o option) forCancel(c *schemas.CancelExternal)     { o.cancel(c) }

func forActivity(set func(*schemas.ScheduleActivity)) ActivityOption {
	return option{activity: set}
}

// List names the task list: only workers of that list get the activity.
func List(name string) ActivityOption {
	return forActivity(func(a *schemas.ScheduleActivity) { a.List = name })
}

// StartToClose bounds one attempt, from the moment a worker takes it. Defaults to 10 minutes.
func StartToClose(d time.Duration) ActivityOption {
	return forActivity(func(a *schemas.ScheduleActivity) {
		a.StartToCloseTimeout = schemas.Duration(d)
	})
}

// ScheduleToStart bounds the wait for a worker. Defaults to no limit.
func ScheduleToStart(d time.Duration) ActivityOption {
	return forActivity(func(a *schemas.ScheduleActivity) {
		a.ScheduleToStartTimeout = schemas.Duration(d)
	})
}

// ScheduleToClose bounds the activity as a whole, with every attempt. Defaults to no limit.
func ScheduleToClose(d time.Duration) ActivityOption {
	return forActivity(func(a *schemas.ScheduleActivity) {
		a.ScheduleToCloseTimeout = schemas.Duration(d)
	})
}

// Heartbeat bounds the time between two heartbeats. Defaults to no limit: then none is needed.
func Heartbeat(d time.Duration) ActivityOption {
	return forActivity(func(a *schemas.ScheduleActivity) {
		a.HeartbeatTimeout = schemas.Duration(d)
	})
}

// StartDelay holds the task back for d.
func StartDelay(d time.Duration) ActivityOption {
	return forActivity(func(a *schemas.ScheduleActivity) { a.StartDelay = schemas.Duration(d) })
}

// NotIdempotent makes the activity run at most once: if its worker is lost, it fails.
func NotIdempotent() ActivityOption {
	return forActivity(func(a *schemas.ScheduleActivity) { a.NotIdempotent = true })
}

// MaximumInterruptions bounds how often in a row the worker of the activity may be lost; then the
// activity fails, with the reason [schemas.ReasonInterrupted]. Defaults to 10;
// [schemas.UnlimitedInterruptions] is no limit. A heartbeat begins a new row, and what a worker
// gives back because it stops does not count.
func MaximumInterruptions(n int) ActivityOption {
	return forActivity(func(a *schemas.ScheduleActivity) { a.MaximumInterruptions = n })
}

// Retry lets the broker repeat an activity that fails, or whose attempt runs out of time; the zero
// policy without end. Without it, retries are the decider's business.
func Retry(p schemas.RetryPolicy) ActivityOption {
	return forActivity(func(a *schemas.ScheduleActivity) { a.Retry = &p })
}

// Priority orders the activities of a list: those above 0 first, then those with 0, then those
// below 0. That of a workflow is written into its history and changes no order.
func Priority(n int) SharedOption {
	return option{
		activity: func(a *schemas.ScheduleActivity) { a.TaskPriority = n },
		child:    func(c *schemas.StartChild) { c.TaskPriority = n },
		next:     func(c *schemas.ContinueAsNew) { c.TaskPriority = n },
	}
}

// TypeVersion names the version of the type. If types are registered, it must be the one that is
// meant to the letter.
func TypeVersion(version string) SharedOption {
	return option{
		activity: func(a *schemas.ScheduleActivity) { a.ActivityTypeVersion = version },
		child:    func(c *schemas.StartChild) { c.WorkflowTypeVersion = version },
		next:     func(c *schemas.ContinueAsNew) { c.WorkflowTypeVersion = version },
	}
}

// Control is a note of the decider to itself, as in [Schedule]. Whoever does the work does not see
// it. It stands in the event that asks and, for children and external requests, in the one that
// refuses: it tells errands to the same workflow apart.
func Control(note any) ControlOption {
	p := payload(note)
	return option{
		activity: func(a *schemas.ScheduleActivity) { a.Control = p },
		timer:    func(t *schemas.ScheduleTimer) { t.Control = p },
		child:    func(c *schemas.StartChild) { c.Control = p },
		signal:   func(s *schemas.SignalExternal) { s.Control = p },
		cancel:   func(c *schemas.CancelExternal) { c.Control = p },
	}
}

// Tell has the run asked again as soon as the child has begun, or the other workflow has the signal
// or the cancel request in its history. Without it the run is asked for a failure only, and for the
// end of a child.
func Tell() TellOption {
	return option{
		child:  func(c *schemas.StartChild) { c.Tell = true },
		signal: func(s *schemas.SignalExternal) { s.Tell = true },
		cancel: func(c *schemas.CancelExternal) { c.Tell = true },
	}
}

// ToRun names the run that is meant. If another run of the workflow is open by then, the signal or
// cancel request reaches nobody.
func ToRun(run string) ExternalOption {
	return option{
		signal: func(s *schemas.SignalExternal) { s.Run = run },
		cancel: func(c *schemas.CancelExternal) { c.Run = run },
	}
}

// ExecutionStartToClose bounds the workflow as a whole, from its first event on; each run of a
// chain has its own. A child's defaults to one year.
func ExecutionStartToClose(d time.Duration) WorkflowOption {
	return option{
		child: func(c *schemas.StartChild) { c.ExecutionStartToCloseTimeout = schemas.Duration(d) },
		next: func(
			c *schemas.ContinueAsNew,
		) {
			c.ExecutionStartToCloseTimeout = schemas.Duration(d)
		},
	}
}

// TaskStartToClose bounds one answer of the workflow's decider. A child's defaults to 10 s.
func TaskStartToClose(d time.Duration) WorkflowOption {
	return option{
		child: func(c *schemas.StartChild) { c.TaskStartToCloseTimeout = schemas.Duration(d) },
		next:  func(c *schemas.ContinueAsNew) { c.TaskStartToCloseTimeout = schemas.Duration(d) },
	}
}

// ActivityDefaults are what the workflow's activities take where their decision says nothing. They
// replace the former ones as a whole.
func ActivityDefaults(defaults schemas.ActivityDefaults) WorkflowOption {
	return option{
		child: func(c *schemas.StartChild) { c.ActivityDefaults = &defaults },
		next:  func(c *schemas.ContinueAsNew) { c.ActivityDefaults = &defaults },
	}
}

// ChildPolicy says what becomes of the children of the workflow that is started when that workflow
// is terminated or times out: it is not about what becomes of the workflow itself, which is for its
// parent's policy to say. A child's defaults to [schemas.ChildTerminate].
func ChildPolicy(p schemas.ChildPolicy) WorkflowOption {
	return option{
		child: func(c *schemas.StartChild) { c.ChildPolicy = p },
		next:  func(c *schemas.ContinueAsNew) { c.ChildPolicy = p },
	}
}

// Tags are what the workflow is found by in lists, at most [schemas.MaxTags]. Without any, the
// option does nothing.
func Tags(tags ...string) WorkflowOption {
	return option{
		child: func(c *schemas.StartChild) { c.TagList = tags },
		next:  func(c *schemas.ContinueAsNew) { c.TagList = tags },
	}
}
