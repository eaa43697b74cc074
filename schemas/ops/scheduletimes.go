package ops

import "github.com/droverhq/drover/schemas"

// ScheduleTimes says when a schedule is due. Its slots are those of Cron, Every, Calendar and At
// together. Except takes some of them away. None is before From, and none at Until or later.
// Package timers/calendar judges and evaluates it.
type ScheduleTimes struct {
	// Cron are expressions of five fields (minute, hour, day of month, month, day of week), of six
	// with the second first, or @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually.
	Cron []string `json:"cron,omitempty"`
	// Every are instants at a fixed distance, counted from the Unix epoch.
	Every []ScheduleInterval `json:"every,omitempty"`
	// Calendar are the fields of a cron expression by their names, with a year.
	Calendar []ScheduleCalendar `json:"calendar,omitempty"`
	// At are single instants, in whole milliseconds.
	At []schemas.Timestamp `json:"at,omitempty"`
	// Except takes slots away.
	Except []ScheduleException `json:"except,omitempty"`
	// From is the first instant at which there may be a slot.
	From schemas.Timestamp `json:"from,omitempty"`
	// Until is the first instant at which there may be none any more.
	Until schemas.Timestamp `json:"until,omitempty"`
	// TimeZone is an IANA name such as Europe/Berlin. The default is UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// Jitter has each slot start later by less than this, and before the next slot. How much is
	// computed from the name of the schedule and the slot.
	Jitter schemas.Duration `json:"jitter,omitempty"`
}

// ScheduleInterval is the instants Offset + n * Every after the Unix epoch, for each whole n. Both
// are whole milliseconds.
type ScheduleInterval struct {
	// Every is from one second to 100 years.
	Every schemas.Duration `json:"every"`
	// Offset is less than Every.
	Offset schemas.Duration `json:"offset,omitempty"`
}

// ScheduleCalendar has each field in the notation of cron. If Second, Minute or Hour is empty it
// is 0, in an exception any value. Each other empty field is any value.
type ScheduleCalendar struct {
	// Second is from 0 to 59.
	Second string `json:"second,omitempty"`
	// Minute is from 0 to 59.
	Minute string `json:"minute,omitempty"`
	// Hour is from 0 to 23.
	Hour string `json:"hour,omitempty"`
	// DayOfMonth is from 1 to 31, or L, L-3, 15W or LW.
	DayOfMonth string `json:"dayOfMonth,omitempty"`
	// Month is from 1 to 12 or JAN to DEC.
	Month string `json:"month,omitempty"`
	// DayOfWeek is from 0 to 7 or SUN to SAT, with FRI#2 and FRIL.
	DayOfWeek string `json:"dayOfWeek,omitempty"`
	// Year is from 1970 to 2261.
	Year string `json:"year,omitempty"`
}

// ScheduleException takes away the slots at which the clock of the time zone shows what it says.
// It has Calendar, or Date, or From and Until or one of the two.
type ScheduleException struct {
	// Calendar takes away the times that match it: {"dayOfWeek": "SUN"} all Sundays.
	Calendar *ScheduleCalendar `json:"calendar,omitempty"`
	// Date is one day: "2026-12-25".
	Date string `json:"date,omitempty"`
	// From is the first day of a range.
	From string `json:"from,omitempty"`
	// Until is the last day of a range.
	Until string `json:"until,omitempty"`
}
