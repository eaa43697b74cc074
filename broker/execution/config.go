package execution

import (
	"github.com/droverhq/drover/internal/retention"
	"github.com/droverhq/drover/schemas"
)

// Config is what the core needs to know of its namespace. The zero value is the default; Defaults
// fills it in.
type Config struct {
	// WorkflowTimeout bounds a run whose start names no limit. Defaults to one year.
	WorkflowTimeout schemas.Duration
	// DeciderTimeout bounds a decision (choose, schedule, answer). Defaults to 10 s.
	DeciderTimeout schemas.Duration
	// StartToClose bounds an activity whose decision and run name no limit. Defaults to 10 minutes.
	StartToClose schemas.Duration
	// DeciderAttempts is how often in a row a decider may fail or time out before the run is
	// parked. Defaults to 10. It is parked after three times if its code does not fit the history.
	DeciderAttempts int
	// DeciderBackoff is the delay before the second attempt; it doubles up to DeciderBackoffCap.
	// Defaults to 100 ms and 10 s.
	DeciderBackoff    schemas.Duration
	DeciderBackoffCap schemas.Duration
	// OpenActivities, OpenTimers and OpenChildren bound what a run may have open at once,
	// OpenExternals its unanswered signals and cancels to other workflows. Default to 1,000, as SWF
	// has it.
	OpenActivities int
	OpenTimers     int
	OpenChildren   int
	OpenExternals  int
	// OpenLocks bounds how many locks a run may hold or wait for. Defaults to 100. LockWaiters
	// bounds how many runs may wait for one lock, whose key holds them all. Defaults to 1,000.
	OpenLocks   int
	LockWaiters int
	// OpenStates bounds how many requests of a run for state keys may be unanswered. Defaults to
	// 100.
	OpenStates int
	// ChildDepth bounds how many ancestors a run may have. Defaults to 50.
	ChildDepth int
	// MaxEvents bounds a history. From there on decisions that would lengthen it are refused; a
	// tenth further, and at least 100 events, the run is terminated. Defaults to 50,000.
	MaxEvents int64
	// Details bounds what the events of one step repeat of what heartbeats have said, in bytes, and
	// what the events of one ring take besides: they stand in one record. The first of them counts
	// in any case. Defaults to 512 KiB.
	Details int
	// ChildPolicy is that of runs whose start names none. Defaults to TERMINATE.
	ChildPolicy schemas.ChildPolicy
	// Retention is what the word system means in a retention, and parent in that of a run without
	// one. Defaults to [retention.Default].
	Retention *retention.Policy
	// Types are the registered types. Defaults to none, which allows any.
	Types *Types
	// Happens is told of each event that [State.Step] makes, before it is applied: the state is
	// that before the event. It must not change it. Defaults to none.
	Happens func(before *State, e schemas.Event)
}

// Defaults returns c with every zero field set to its default.
func (c Config) Defaults() Config {
	def(&c.WorkflowTimeout, schemas.Seconds(365*24*3600))
	def(&c.DeciderTimeout, schemas.Seconds(10))
	def(&c.StartToClose, schemas.Seconds(600))
	def(&c.DeciderAttempts, 10)
	def(&c.DeciderBackoff, schemas.Seconds(0.1))
	def(&c.DeciderBackoffCap, schemas.Seconds(10))
	def(&c.OpenActivities, 1000)
	def(&c.OpenTimers, 1000)
	def(&c.OpenChildren, 1000)
	def(&c.OpenExternals, 1000)
	def(&c.OpenLocks, 100)
	def(&c.LockWaiters, 1000)
	def(&c.OpenStates, 100)
	def(&c.ChildDepth, 50)
	def(&c.MaxEvents, 50_000)
	def(&c.Details, 512<<10)
	def(&c.ChildPolicy, schemas.ChildTerminate)
	return c
}

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// hardLimit is where a history ends in any case: beyond MaxEvents there is room to react, but not
// for ever.
func (c *Config) hardLimit() int64 { return c.MaxEvents + max(c.MaxEvents/10, 100) }

// EventsLeft is after how many more events a history with so many is ended, from three quarters of
// MaxEvents on; 0 before.
func (c *Config) EventsLeft(events int64) int64 {
	if events < c.MaxEvents*3/4 {
		return 0
	}
	return max(c.hardLimit()-events, 1)
}

// backoff is the delay before a decider is asked again after n failures in a row.
func (c *Config) backoff(n int) schemas.Duration {
	if n <= 0 {
		return 0
	}
	d := c.DeciderBackoff
	for range n - 1 {
		if d *= 2; d >= c.DeciderBackoffCap {
			return c.DeciderBackoffCap
		}
	}
	return min(d, c.DeciderBackoffCap)
}
