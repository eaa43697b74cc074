package drover

import "github.com/droverhq/drover/schemas"

// The types of package schemas that most programs meet. They are the same types under shorter
// names.
type (
	// Payload is what users hand from one part of a workflow to another: any bytes, mostly JSON.
	Payload = schemas.Payload
	// Duration is a span of time in messages; Timestamp an instant.
	Duration  = schemas.Duration
	Timestamp = schemas.Timestamp
	// Event is one line of a history, and EventType says which.
	Event     = schemas.Event
	EventType = schemas.EventType
	// Decision is one thing that a decider wants done.
	Decision = schemas.Decision
	// Execution names a workflow and a run of it.
	Execution = schemas.Execution
	// ExecutionInfo describes a run; Status is how it stands.
	ExecutionInfo = schemas.ExecutionInfo
	Status        = schemas.Status
	// ActivityDefaults and ChildPolicy are set when a workflow starts.
	ActivityDefaults = schemas.ActivityDefaults
	ChildPolicy      = schemas.ChildPolicy
	// RetryPolicy says how the attempts of an activity follow each other.
	RetryPolicy = schemas.RetryPolicy
)
