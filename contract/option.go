package contract

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/droverhq/drover/schemas"
)

// ErrOption is wrapped by errors about options of a call.
var ErrOption = errors.New("invalid option")

// Option says how an activity is scheduled, or a workflow as a child: which of them, its function
// tells. The options are those of package decider, by the same names. A duration of 0 sets nothing,
// and one of [schemas.Unlimited] is no limit.
type Option struct {
	name  string
	set   func(*schemas.ScheduleActivity) // nil: not for activities
	child func(*schemas.StartChild)       // nil: not for children
}

// DefaultList is the task list of activities that name none, in runs whose activity defaults name
// none either, and of workers that name none. Programs may share it: a task goes on at once to a
// worker that knows its type. Name a list where the workers differ, in machines, rights or load.
const DefaultList = "default"

// List names the task list: only workers of that list get the activity. Defaults to that of the
// run's activity defaults, or else to [DefaultList].
func List(name string) Option {
	return Option{name: "List", set: func(a *schemas.ScheduleActivity) { a.List = name }}
}

// StartToClose bounds one attempt, from the moment a worker takes it. Defaults to 10 minutes.
func StartToClose(d time.Duration) Option {
	return limit("StartToClose", d, func(a *schemas.ScheduleActivity) *schemas.Duration {
		return &a.StartToCloseTimeout
	})
}

// ScheduleToStart bounds the wait for a worker. Defaults to no limit.
func ScheduleToStart(d time.Duration) Option {
	return limit("ScheduleToStart", d, func(a *schemas.ScheduleActivity) *schemas.Duration {
		return &a.ScheduleToStartTimeout
	})
}

// ScheduleToClose bounds the activity as a whole, with every attempt. Defaults to no limit.
func ScheduleToClose(d time.Duration) Option {
	return limit("ScheduleToClose", d, func(a *schemas.ScheduleActivity) *schemas.Duration {
		return &a.ScheduleToCloseTimeout
	})
}

// Heartbeat bounds the time between two heartbeats. Defaults to no limit: then none is needed.
func Heartbeat(d time.Duration) Option {
	return limit("Heartbeat", d, func(a *schemas.ScheduleActivity) *schemas.Duration {
		return &a.HeartbeatTimeout
	})
}

// StartDelay holds the task back for d.
func StartDelay(d time.Duration) Option {
	return limit("StartDelay", d, func(a *schemas.ScheduleActivity) *schemas.Duration {
		return &a.StartDelay
	})
}

// Retry lets the broker repeat an activity that fails, or whose attempt runs out of time, by this
// policy instead of the default one.
func Retry(p schemas.RetryPolicy) Option {
	p.NonRetryable = slices.Clone(p.NonRetryable)
	return Option{name: "Retry", set: func(a *schemas.ScheduleActivity) { a.Retry = new(p) }}
}

// NoRetry makes one attempt the only one. Every failure is then the workflow's to handle.
func NoRetry() Option {
	return Option{name: "NoRetry", set: func(a *schemas.ScheduleActivity) {
		a.Retry = &schemas.RetryPolicy{MaximumAttempts: 1}
	}}
}

// NotIdempotent makes the activity run at most once: if its worker is lost, it fails. What its
// worker reports as failed is repeated, unless [NoRetry] is given too.
func NotIdempotent() Option {
	return Option{name: "NotIdempotent", set: func(a *schemas.ScheduleActivity) { a.NotIdempotent = true }}
}

// MaximumInterruptions bounds how often in a row the worker of the activity may be lost; then the
// activity fails, with the reason [schemas.ReasonInterrupted]. Defaults to 10;
// [schemas.UnlimitedInterruptions] is no limit.
func MaximumInterruptions(n int) Option {
	return Option{name: "MaximumInterruptions", set: func(a *schemas.ScheduleActivity) {
		a.MaximumInterruptions = n
	}}
}

// Priority orders the activities of a list, or the decisions of a type: those above 0 first, then
// those with 0, then those below 0.
func Priority(n int) Option {
	return Option{
		name:  "Priority",
		set:   func(a *schemas.ScheduleActivity) { a.TaskPriority = n },
		child: func(c *schemas.StartChild) { c.TaskPriority = n },
	}
}

// TypeVersion names the version of the type. If types are registered, it must be the one that is
// meant to the letter.
func TypeVersion(version string) Option {
	return Option{
		name:  "TypeVersion",
		set:   func(a *schemas.ScheduleActivity) { a.ActivityTypeVersion = version },
		child: func(c *schemas.StartChild) { c.WorkflowTypeVersion = version },
	}
}

func limit(
	name string, d time.Duration, field func(*schemas.ScheduleActivity) *schemas.Duration,
) Option {
	return Option{name: name, set: func(a *schemas.ScheduleActivity) {
		if d != 0 {
			*field(a) = schemas.Duration(d)
		}
	}}
}

const zeroOption = "an option is the zero value: use the functions of package contract"

// scheduled applies options, and returns what is wrong with them.
func scheduled(lists ...[]Option) (s *schemas.ScheduleActivity, problem string) {
	s = &schemas.ScheduleActivity{Retry: &schemas.RetryPolicy{}}
	for _, o := range slices.Concat(lists...) {
		switch {
		case o.name == "":
			return nil, zeroOption
		case o.set == nil:
			return nil, o.name + " is for children alone"
		}
		o.set(s)
	}
	if s.List != "" {
		if err := schemas.ValidateName("List", s.List); err != nil {
			return nil, err.Error()
		}
	}
	if len(s.ActivityTypeVersion) > schemas.MaxTypeVersionLen {
		return nil, fmt.Sprintf("TypeVersion: %d bytes; want at most %d",
			len(s.ActivityTypeVersion), schemas.MaxTypeVersionLen)
	}
	if err := s.ValidateLimits(); err != nil {
		return nil, err.Message
	}
	return s, ""
}

// contradictions returns what is wrong with the options of a declaration. What only a call may say
// beside the contract is not looked at: it overrides.
func contradictions(opts []Option) string {
	given := map[string]bool{}
	for _, o := range opts {
		if given[o.name] && o.name != "" {
			return fmt.Sprintf("%s is given twice: keep one", o.name)
		}
		given[o.name] = true
	}
	switch {
	case given[abandon]:
		return "Abandon is for calls alone"
	case given["Retry"] && given["NoRetry"]:
		return "Retry and NoRetry contradict each other: keep one"
	case given["NotIdempotent"] && given["MaximumInterruptions"]:
		return "NotIdempotent and MaximumInterruptions contradict each other: an activity that " +
			"may run once is not begun again when its worker is lost; keep one"
	}
	s, problem := scheduled(opts)
	if problem != "" {
		return problem
	}
	for _, p := range []struct {
		shorter, longer string
		a, b            schemas.Duration
	}{
		{
			"StartToClose", "ScheduleToClose",
			s.StartToCloseTimeout, s.ScheduleToCloseTimeout,
		},
		{
			"ScheduleToStart", "ScheduleToClose",
			s.ScheduleToStartTimeout, s.ScheduleToCloseTimeout,
		},
		{"Heartbeat", "StartToClose", s.HeartbeatTimeout, s.StartToCloseTimeout},
		{
			"the InitialInterval of Retry", "its MaximumInterval",
			s.Retry.InitialInterval, s.Retry.MaximumInterval,
		},
	} {
		if p.a.Limited() && p.b.Limited() && p.a > p.b {
			return fmt.Sprintf("%s (%v) is longer than %s (%v), so it would never count: shorten "+
				"the first or leave it out", p.shorter, p.a, p.longer, p.b)
		}
	}
	return ""
}

func invalid(of, problem string) error {
	return fmt.Errorf("contract: %s: %w: %s", of, ErrOption, problem)
}
