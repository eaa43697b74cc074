package partition

import (
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/schemas"
)

// alarm is what the owner knows of the run's one message in the alarm stream.
type alarm struct {
	due    schemas.Timestamp // armed for; 0 if nothing is known to be armed
	seq    uint64            // of the armed message; 0 if unknown
	way    *sentAlarm        // a publish that is under way; nil: none
	fired  uint64            // the highest sequence that has rung since then
	queued bool              // will be looked at in a while
	// in the line of those that are looked at once AlarmDelay is over; 0: in none
	place uint64
	// firing: the armed message is being rung by a worker that deletes it, or has deleted it, once
	// we have answered.
	firing bool
	// strange: one may be armed that nothing is known of, by whoever had the run in memory before
	// or by a publish that was not acknowledged.
	strange bool
}

// sentAlarm is an alarm that is being published.
type sentAlarm struct {
	run     *run
	id      string // of the run
	due     schemas.Timestamp
	covered []*watermark.Completion // what waits for it
}
