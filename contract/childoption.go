package contract

import (
	"slices"
	"time"

	"github.com/droverhq/drover/schemas"
)

func forChild(name string, set func(*schemas.StartChild)) Option {
	return Option{name: name, child: set}
}

// WorkflowID is the workflow id of a child, which no open run may have. Defaults to that of its
// parent with the name of the call after it, such as order-7/ship#1.
func WorkflowID(id string) Option {
	return forChild("WorkflowID", func(c *schemas.StartChild) { c.WorkflowID = id })
}

// ExecutionStartToClose bounds the run of a child as a whole. Defaults to no limit.
func ExecutionStartToClose(d time.Duration) Option {
	return forChild("ExecutionStartToClose", func(c *schemas.StartChild) {
		c.ExecutionStartToCloseTimeout = schemas.Duration(d)
	})
}

// ChildPolicy says what becomes of the children of a child if that is terminated or runs out of
// time. Defaults to [schemas.ChildTerminate].
func ChildPolicy(p schemas.ChildPolicy) Option {
	return forChild("ChildPolicy", func(c *schemas.StartChild) { c.ChildPolicy = p })
}

const abandon = "Abandon"

// Abandon leaves what is called alone when its scope is canceled: it is not asked to end, and is not
// waited for. A child goes on as well when its parent returns; without Abandon it is canceled then.
func Abandon() Option {
	return Option{
		name:  abandon,
		set:   func(*schemas.ScheduleActivity) {},
		child: func(*schemas.StartChild) {},
	}
}

// Abandons tells whether Abandon is one of the options.
func Abandons(opts ...Option) bool {
	return slices.ContainsFunc(opts, func(o Option) bool { return o.name == abandon })
}
