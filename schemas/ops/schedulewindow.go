package ops

import "github.com/droverhq/drover/schemas"

// ScheduleWindow is a span of time in each period in which a schedule is to start one run. Nodes
// try at Opens, and from then on each Every until the window closes.
type ScheduleWindow struct {
	// Opens is the local time of day at which the window opens: "02:00". In a week it is on
	// Monday, in a month on the 1st. For the period hour it is the minute: ":15". It is empty if
	// Period is a cron expression.
	Opens string `json:"opens,omitempty"`
	// Length is how long the window is open. It is shorter than the period.
	Length schemas.Duration `json:"length"`
	// Every is the distance of the triggers. The default is 5 minutes, or Length if that is
	// shorter.
	Every schemas.Duration `json:"every,omitempty"`
	// Period is day, week, month or hour, or a cron expression at whose times windows open. The
	// default is day.
	Period string `json:"period,omitempty"`
	// TimeZone is an IANA name such as Europe/Berlin. The default is UTC.
	TimeZone string `json:"timeZone,omitempty"`
}
