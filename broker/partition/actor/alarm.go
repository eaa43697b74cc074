package actor

import (
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/schemas"
)

// Alarm is what the owner knows of the run's one message in the alarm stream.
type Alarm struct {
	Due    schemas.Timestamp // armed for; 0 if nothing is known to be armed
	Seq    uint64            // of the armed message; 0 if unknown
	Way    *SentAlarm        // a publish that is under way; nil: none
	Fired  uint64            // the highest sequence that has fired since then
	Queued bool              // will be looked at in a while
	// Place is that in the line of those that are looked at once AlarmDelay is over; 0: in none.
	Place uint64
	// Firing: the armed message is being fired by a worker that deletes it, or has deleted it, once
	// we have answered.
	Firing bool
	// Strange: one may be armed that nothing is known of, by whoever had the run in memory before
	// or by a publish that was not acknowledged.
	Strange bool
}

// SentAlarm is an alarm that is being published.
type SentAlarm struct {
	Run     *Run
	RunID   string // of the run
	Due     schemas.Timestamp
	Covered []*watermark.Completion // what waits for it
}
