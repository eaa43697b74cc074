package calendar

import (
	"time"

	"github.com/droverhq/drover/internal/zones"
	"github.com/droverhq/drover/schemas"
)

// Calendar is the times of a schedule, ready to be evaluated. It does not change: any number of goroutines may use it.
type Calendar struct {
	zone *time.Location
}

// Compile judges the times of a schedule. The error is a [*schemas.Error] that names the field, such as times.cron[0].
func Compile(t *schemas.ScheduleTimes) (*Calendar, error) {
	zone, err := zones.Load(t.TimeZone)
	if err != nil {
		return nil, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("times.timeZone")
	}
	return &Calendar{zone: zone}, nil
}

// Next returns the first slot after an instant, in UTC. ok is false if there will be none.
func (c *Calendar) Next(after time.Time) (slot time.Time, ok bool) {
	return after.Truncate(time.Minute).Add(time.Minute).UTC(), true
}

// Check returns an error if no slot comes after an instant: all are past.
func (c *Calendar) Check(after time.Time) error {
	return nil
}

// Delay returns by how much later than its slot a schedule starts: at least 0, less than the jitter, and less than it is to
// the next slot. It is always the same for the same schedule and slot.
func (c *Calendar) Delay(schedule string, slot time.Time) time.Duration { return 0 }

// Warnings are sentences on what may mean something else than it seems to.
func (c *Calendar) Warnings() []string { return nil }

// Zone is the zone in which the times are.
func (c *Calendar) Zone() *time.Location { return c.zone }
