package recycle

import (
	"fmt"
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

// The defaults of a [ops.Recycle], and its bounds.
const (
	day            = 24 * time.Hour
	defaultNotice  = 10 * time.Minute
	defaultStagger = 2 * time.Minute
	mostDays       = 366
	longestStagger = time.Hour
)

// plan is a recycle that was set, ready to be evaluated.
type plan struct {
	set   ops.Recycle
	times *calendar.Calendar // nil if there is no daily one
	days  int64              // between two
}

// compile judges what is set. The error is a [*schemas.Error] that names the field.
func compile(r *ops.Recycle) (*plan, error) {
	p := &plan{set: *r}
	every := r.Every.Std()
	if every == 0 {
		every = day
	}
	refuse := func(field, hint, format string, args ...any) (*plan, error) {
		return nil, schemas.Errorf(schemas.CodeInvalid, format, args...).InField("recycle."+field).
			WithHint("%s", hint)
	}
	switch {
	case every < day || every > mostDays*day || every%day != 0:
		return refuse("every", "use 24h for each day, 48h for each second one, up to 366 days",
			"every is %v: it counts whole days", every)
	case r.Notice < 0 || r.Notice.Std() > day:
		return refuse("notice", "use up to 24h, or leave it out for 10m", "notice is %v", r.Notice)
	case r.Stagger < 0 || r.Stagger.Std() > longestStagger:
		return refuse("stagger", "use up to 1h, or leave it out for 2m", "stagger is %v", r.Stagger)
	}
	p.days = int64(every / day)
	at := r.At
	if at == "" {
		at = "00:00" // the zone is judged all the same
	}
	hour, minute, ok := clock(at)
	if !ok {
		return refuse("at", "write hours and minutes, as in 03:30",
			"at is %q: it is no time of day", r.At)
	}
	times, err := calendar.Compile(&ops.ScheduleTimes{
		Cron: []string{fmt.Sprintf("%d %d * * *", minute, hour)}, TimeZone: r.TimeZone,
	})
	if err != nil {
		e := schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("recycle.timeZone")
		return nil, e.WithHint("use an IANA name such as Europe/Berlin, or leave it out for UTC")
	}
	if r.At != "" {
		p.times = times
	}
	return p, nil
}

// clock reads a time of day such as 03:30.
func clock(text string) (hour, minute int, ok bool) {
	t, err := time.Parse("15:04", text)
	if err != nil || len(text) != len("15:04") {
		return 0, 0, false
	}
	return t.Hour(), t.Minute(), true
}

// notice is how long before a slot it is announced.
func (p *plan) notice() time.Duration {
	if p.set.Notice > 0 {
		return p.set.Notice.Std()
	}
	return defaultNotice
}

// stagger is the time between two nodes.
func (p *plan) stagger() time.Duration {
	if p.set.Stagger > 0 {
		return p.set.Stagger.Std()
	}
	return defaultStagger
}

// next is the first slot after an instant; the zero time if there is none.
func (p *plan) next(after time.Time) time.Time {
	slot := p.daily(after)
	if asked := p.set.Asked.Time(); asked.After(after) && (slot.IsZero() || asked.Before(slot)) {
		return asked
	}
	return slot
}

// last is the latest slot at an instant or before it; the zero time if there is none. No daily one
// is before it was set.
func (p *plan) last(at time.Time) time.Time {
	var latest time.Time
	if asked := p.set.Asked.Time(); !asked.After(at) {
		latest = asked
	}
	from := at.Add(-time.Duration(p.days+2) * day)
	if set := p.set.UpdatedAt.Time(); set.After(from) {
		from = set
	}
	for slot := p.daily(from); !slot.IsZero() && !slot.After(at); slot = p.daily(slot) {
		if slot.After(latest) {
			latest = slot
		}
	}
	return latest
}

// daily is the first slot after an instant at the time of day that is set, on a day that counts.
func (p *plan) daily(after time.Time) time.Time {
	if p.times == nil {
		return time.Time{}
	}
	for range 2 * mostDays {
		slot, ok := p.times.Next(after)
		if !ok {
			break
		}
		y, m, d := slot.In(p.times.Zone()).Date()
		if time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()/int64(day/time.Second)%p.days == 0 {
			return slot
		}
		after = slot
	}
	return time.Time{}
}
