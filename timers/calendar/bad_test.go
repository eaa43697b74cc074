package calendar_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

// S2-10: times that are never due, or that cannot be meant, are refused: the error names the
// field, and the way out.
func TestBadTimes(t *testing.T) {
	at := func(text string) schemas.Timestamp {
		instant, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return schemas.At(instant)
	}
	for name, tc := range map[string]struct {
		times       ops.ScheduleTimes
		field, hint string
	}{
		"nothing":            {ops.ScheduleTimes{}, "times", "cron, every, calendar and at"},
		"empty":              {*cron("", ""), "times.cron[0]", "write five"},
		"four fields":        {*cron("", "0 0 * * *", "0 0 * *"), "times.cron[1]", "write five"},
		"seven fields":       {*cron("", "0 0 0 1 1 * 2026"), "times.cron[0]", "calendar"},
		"hour 24":            {*cron("", "0 24 * * *"), "times.cron[0]", "0 to 23"},
		"minute 60":          {*cron("", "60 * * * *"), "times.cron[0]", "0 to 59"},
		"day 0":              {*cron("", "0 0 0 * *"), "times.cron[0]", "1 to 31"},
		"month 13":           {*cron("", "0 0 1 13 *"), "times.cron[0]", "JAN to DEC"},
		"weekday 8":          {*cron("", "0 0 * * 8"), "times.cron[0]", "SUN to SAT"},
		"no word":            {*cron("", "0 0 * * MONDAY"), "times.cron[0]", "SUN to SAT"},
		"a sign":             {*cron("", "+5 * * * *"), "times.cron[0]", "0 to 59"},
		"list with a hole":   {*cron("", "1,,2 * * * *"), "times.cron[0]", "lists"},
		"range goes down":    {*cron("", "0 22-6 * * *"), "times.cron[0]", "22-23,0-6"},
		"step 0":             {*cron("", "*/0 * * * *"), "times.cron[0]", "from 1 on"},
		"step of 90 minutes": {*cron("", "*/90 * * * *"), "times.cron[0]", "every"},
		"step without end":   {*cron("", "*/ * * * *"), "times.cron[0]", "from 1 on"},
		"Jenkins":            {*cron("", "H * * * *"), "times.cron[0]", "0 to 59"},
		"L of the week":      {*cron("", "0 0 * * L"), "times.cron[0]", "SATL"},
		"sixth Friday":       {*cron("", "0 0 * * FRI#6"), "times.cron[0]", "FRI#2"},
		"L-31":               {*cron("", "0 0 L-31 * *"), "times.cron[0]", "L-3"},
		"32W":                {*cron("", "0 0 32W * *"), "times.cron[0]", "15W"},
		"@reboot":            {*cron("", "@reboot"), "times.cron[0]", "@daily"},
		"@every":             {*cron("", "@every 5m"), "times.cron[0]", `{"every": "5m"}`},
		"CRON_TZ":            {*cron("", "CRON_TZ=Asia/Tokyo 0 9 * * *"), "times.cron[0]", `timeZone to "Asia/Tokyo", and the expression to "0 9 * * *"`},
		"TZ":                 {*cron("", "TZ=UTC 0 9 * * *"), "times.cron[0]", "timeZone"},
		"30 February":        {*cron("", "0 0 30 2 *"), "times.cron[0]", "L is the last day"},
		"31 April":           {*cron("", "0 0 31 4,6,9,11 *"), "times.cron[0]", "L is the last day"},
		"fifth 1st":          {*cron("", "0 0 1 * MON#5"), "times.cron[0]", "days that exist"},
		"calendar": {
			ops.ScheduleTimes{Calendar: []ops.ScheduleCalendar{{Hour: "9"}, {Hour: "25"}}}, "times.calendar[1].hour", "0 to 23",
		},
		"leap day of 2023": {
			ops.ScheduleTimes{Calendar: []ops.ScheduleCalendar{{DayOfMonth: "29", Month: "FEB", Year: "2023"}}},
			"times.calendar[0].dayOfMonth", "days that exist",
		},
		"year 1969": {ops.ScheduleTimes{Calendar: []ops.ScheduleCalendar{{Year: "1969"}}}, "times.calendar[0].year", "1970 to 2261"},
		"interval of zero": {
			ops.ScheduleTimes{Every: []ops.ScheduleInterval{{}}}, "times.every[0].every", "5m",
		},
		"negative interval": {
			ops.ScheduleTimes{Every: []ops.ScheduleInterval{{Every: schemas.Seconds(-5)}}}, "times.every[0].every", "a second or more",
		},
		"interval below a second": {
			ops.ScheduleTimes{Every: []ops.ScheduleInterval{{Every: schemas.Seconds(0.5)}}}, "times.every[0].every", "a second or more",
		},
		"interval without end": {
			ops.ScheduleTimes{Every: []ops.ScheduleInterval{{Every: schemas.Seconds(200 * 366 * 86400)}}}, "times.every[0].every", "at",
		},
		"interval with microseconds": {
			ops.ScheduleTimes{Every: []ops.ScheduleInterval{{Every: schemas.Seconds(1.000001)}}}, "times.every[0].every", "round",
		},
		"offset of an interval": {
			ops.ScheduleTimes{Every: []ops.ScheduleInterval{{Every: schemas.Seconds(60), Offset: schemas.Seconds(60)}}},
			"times.every[0].offset", "off the offset",
		},
		"negative offset": {
			ops.ScheduleTimes{Every: []ops.ScheduleInterval{{Every: schemas.Seconds(60), Offset: schemas.Seconds(-1)}}},
			"times.every[0].offset", "off the offset",
		},
		"empty instant": {ops.ScheduleTimes{At: []schemas.Timestamp{0}}, "times.at[0]", "2026-12-24T18:00:00Z"},
		"nanoseconds":   {ops.ScheduleTimes{At: []schemas.Timestamp{at("2026-01-01T00:00:00.000001Z")}}, "times.at[0]", "round"},
		"no zone":       {*cron("Europe/Nowhere", "0 0 * * *"), "times.timeZone", "Europe/Berlin"},
		"half a zone":   {*cron("berlin", "0 0 * * *"), "times.timeZone", "did you mean Europe/Berlin?"},
		"Local":         {*cron("Local", "0 0 * * *"), "times.timeZone", "IANA"},
		"until before from": {
			ops.ScheduleTimes{Cron: []string{"0 0 * * *"}, From: at("2026-02-01T00:00:00Z"), Until: at("2026-01-01T00:00:00Z")},
			"times.until", "later than from",
		},
		"nothing between": {
			ops.ScheduleTimes{Cron: []string{"0 0 * * *"}, From: at("2026-02-01T01:00:00Z"), Until: at("2026-02-01T02:00:00Z")},
			"times", "from and until",
		},
		"instants outside": {
			ops.ScheduleTimes{At: []schemas.Timestamp{at("2026-01-01T00:00:00Z")}, From: at("2026-02-01T01:00:00Z")},
			"times", "from and until",
		},
		"negative jitter": {ops.ScheduleTimes{Cron: []string{"0 0 * * *"}, Jitter: schemas.Seconds(-1)}, "times.jitter", "leave it out"},
		"unlimited jitter": {
			ops.ScheduleTimes{Cron: []string{"0 0 * * *"}, Jitter: schemas.Unlimited}, "times.jitter", "leave it out",
		},
		"exception of nothing": {
			ops.ScheduleTimes{Cron: []string{"0 0 * * *"}, Except: []ops.ScheduleException{{}}}, "times.except[0]", "an exception for each",
		},
		"exception of two kinds": {
			ops.ScheduleTimes{Cron: []string{"0 0 * * *"}, Except: []ops.ScheduleException{{Date: "2026-01-01", From: "2026-01-02"}}},
			"times.except[0]", "an exception for each",
		},
		"exception without a day": {
			ops.ScheduleTimes{Cron: []string{"0 0 * * *"}, Except: []ops.ScheduleException{{Date: "2026-02-29"}}},
			"times.except[0].date", "2026-12-25",
		},
		"exception backwards": {
			ops.ScheduleTimes{Cron: []string{"0 0 * * *"}, Except: []ops.ScheduleException{{From: "2026-02-02", Until: "2026-02-01"}}},
			"times.except[0].until", "exchange",
		},
		"exception that is no calendar": {
			ops.ScheduleTimes{Cron: []string{"0 0 * * *"}, Except: []ops.ScheduleException{{Calendar: &ops.ScheduleCalendar{Month: "x"}}}},
			"times.except[0].calendar.month", "JAN to DEC",
		},
		"all taken away by a calendar": {
			ops.ScheduleTimes{
				Cron:   []string{"* * * * 1-5"},
				Except: []ops.ScheduleException{{Calendar: &ops.ScheduleCalendar{DayOfWeek: "MON-FRI"}}},
			},
			"times.except", "leave one out",
		},
		"all taken away by seconds": {
			ops.ScheduleTimes{
				Every:  []ops.ScheduleInterval{{Every: schemas.Seconds(1)}},
				Except: []ops.ScheduleException{{Calendar: &ops.ScheduleCalendar{Minute: "0-29"}}, {Calendar: &ops.ScheduleCalendar{Minute: "30-59"}}},
			},
			"times.except", "leave one out",
		},
		"all taken away by a range": {
			ops.ScheduleTimes{At: []schemas.Timestamp{at("2026-01-01T00:00:00Z")}, Except: []ops.ScheduleException{{From: "2020-01-01"}}},
			"times.except", "leave one out",
		},
		"too many": {*cron("", make([]string, 101)...), "times.cron", "lists"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := calendar.Compile(&tc.times)
			refused(t, err, tc.field, tc.hint)
		})
	}
}

// refused wants an error of the schemas that names a field, and has hint in its way out.
func refused(t *testing.T, err error, field, hint string) {
	t.Helper()
	var e *schemas.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an error of %s", err, field)
	}
	if e.Code != schemas.CodeInvalid || e.Field != field || !strings.Contains(e.Hint, hint) {
		t.Errorf("got %s of %q, hint %q; want field %q and %q in the hint: %v", e.Code, e.Field, e.Hint, field, hint, err)
	}
	if len(e.Error()) > 600 {
		t.Errorf("the error is %d bytes long", len(e.Error()))
	}
}

// What somebody wrote is shown with its beginning only.
func TestLongInput(t *testing.T) {
	for _, long := range []string{strings.Repeat("9", 100_000), strings.Repeat("* ", 100_000), "@" + strings.Repeat("x", 100_000), "0 0 " + strings.Repeat("x", 100_000) + " * *"} {
		_, err := calendar.Compile(cron("", long))
		refused(t, err, "times.cron[0]", "")
		_, err = calendar.Compile(cron(long, "0 0 * * *"))
		refused(t, err, "times.timeZone", "")
	}
}

// S2-10: whether all times are past can be told with the time only.
func TestAllPast(t *testing.T) {
	c := compile(t, &ops.ScheduleTimes{Calendar: []ops.ScheduleCalendar{{DayOfMonth: "1", Month: "JAN", Year: "2020,2022"}}})
	if err := c.Check(time.Date(2021, 12, 31, 23, 59, 59, 0, time.UTC)); err != nil {
		t.Error(err)
	}
	refused(t, c.Check(time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC)), "times", "past")
}

func TestWarnings(t *testing.T) {
	for expression, want := range map[string]string{
		"0 0 13 * FRI":   "days that match one of them write two cron entries",
		"*/7 * * * *":    `minute "*/7" begins anew with each hour`,
		"0 */5 * * *":    `hour "*/5" begins anew with each day`,
		"*/15 */6 * * *": "",
		"0 0 * * FRI":    "",
		"0 0 1-31 * FRI": "",
		"0 0 13 * ?":     "",
	} {
		got := strings.Join(compile(t, cron("", expression)).Warnings(), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) || want != "" && !strings.HasPrefix(got, "times.cron[0]: ") {
			t.Errorf("%s: got %q, want %q", expression, got, want)
		}
	}
}
