package calendar_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

func compileWindow(t testing.TB, w *ops.ScheduleWindow) *calendar.Window {
	t.Helper()
	compiled, err := calendar.CompileWindow(w)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

const (
	minutes = schemas.Duration(time.Minute)
	hours   = schemas.Duration(time.Hour)
)

// S2-11: a window has a trigger each five minutes, and a name of its period.
func TestTriggers(t *testing.T) {
	for name, tc := range map[string]struct {
		window ops.ScheduleWindow
		after  string
		want   []string
	}{
		"a day": {
			ops.ScheduleWindow{Opens: "02:00", Length: 12 * minutes, TimeZone: "Europe/Berlin"},
			"2026-11-28T00:59:59Z",
			[]string{
				"2026-11-28T01:00:00Z 2026-11-28", "2026-11-28T01:05:00Z 2026-11-28", "2026-11-28T01:10:00Z 2026-11-28 last",
				"2026-11-29T01:00:00Z 2026-11-29",
			},
		},
		"from within": {
			ops.ScheduleWindow{Opens: "02:00", Length: hours, Every: 20 * minutes},
			"2026-11-28T02:21:00.5Z",
			[]string{"2026-11-28T02:40:00Z 2026-11-28 last", "2026-11-29T02:00:00Z 2026-11-29"},
		},
		"over midnight": {
			ops.ScheduleWindow{Opens: "23:30", Length: hours, Every: 30 * minutes},
			"2026-12-31T12:00:00Z",
			[]string{"2026-12-31T23:30:00Z 2026-12-31", "2027-01-01T00:00:00Z 2026-12-31 last", "2027-01-01T23:30:00Z 2027-01-01"},
		},
		"a week, of two years": {
			ops.ScheduleWindow{Opens: "06:00", Length: hours, Every: hours, Period: "week"},
			"2026-12-27T00:00:00Z",
			[]string{"2026-12-28T06:00:00Z 2026-W53 last", "2027-01-04T06:00:00Z 2027-W01 last"},
		},
		"a month": {
			ops.ScheduleWindow{Opens: "06:00", Length: hours, Every: hours, Period: "month"},
			"2026-12-27T00:00:00Z",
			[]string{"2027-01-01T06:00:00Z 2027-01 last", "2027-02-01T06:00:00Z 2027-02 last"},
		},
		"an hour": {
			ops.ScheduleWindow{Opens: ":50", Length: 20 * minutes, Every: 10 * minutes, Period: "hour"},
			"2026-11-28T12:55:00Z",
			[]string{"2026-11-28T13:00:00Z 2026-11-28T1200Z last", "2026-11-28T13:50:00Z 2026-11-28T1300Z"},
		},
		"cron": {
			ops.ScheduleWindow{Length: 8 * minutes, Period: "0 13 * * MON-FRI", TimeZone: "Asia/Kolkata"},
			"2026-11-27T08:00:00Z",
			[]string{"2026-11-30T07:30:00Z 20261130T073000Z", "2026-11-30T07:35:00Z 20261130T073000Z last", "2026-12-01T07:30:00Z 20261201T073000Z"},
		},
		"shorter than five minutes": {
			ops.ScheduleWindow{Opens: "02:00", Length: minutes},
			"2026-11-28T00:00:00Z",
			[]string{"2026-11-28T02:00:00Z 2026-11-28 last", "2026-11-29T02:00:00Z 2026-11-29 last"},
		},
		"in the gap": {
			ops.ScheduleWindow{Opens: "02:30", Length: hours, Every: 30 * minutes, TimeZone: "Europe/Berlin"},
			"2026-03-29T00:00:00Z",
			[]string{"2026-03-29T01:00:00Z 2026-03-29", "2026-03-29T01:30:00Z 2026-03-29 last", "2026-03-30T00:30:00Z 2026-03-30"},
		},
		"in the fold": {
			ops.ScheduleWindow{Opens: "02:30", Length: hours, Every: 30 * minutes, TimeZone: "Europe/Berlin"},
			"2026-10-25T00:00:00Z",
			[]string{"2026-10-25T00:30:00Z 2026-10-25", "2026-10-25T01:00:00Z 2026-10-25 last", "2026-10-26T01:30:00Z 2026-10-26"},
		},
		"each hour of the fold": {
			ops.ScheduleWindow{Opens: "30", Length: 10 * minutes, Every: 10 * minutes, Period: "hour", TimeZone: "Europe/Berlin"},
			"2026-10-25T00:00:00Z",
			[]string{"2026-10-25T00:30:00Z 2026-10-25T0000Z last", "2026-10-25T01:30:00Z 2026-10-25T0100Z last"},
		},
		"opens in a gap over midnight": { // at 23:30, which leads to 0:00 of the next day
			ops.ScheduleWindow{Opens: "23:30", Length: hours, Every: hours, TimeZone: "America/Nuuk"},
			"2024-03-30T12:00:00Z",
			[]string{"2024-03-31T01:00:00Z 2024-03-30 last", "2024-04-01T00:30:00Z 2024-03-31 last"},
		},
		"a day that does not exist": {
			ops.ScheduleWindow{Opens: "12:00", Length: hours, Every: hours, TimeZone: "Pacific/Apia"},
			"2011-12-29T12:00:00Z",
			[]string{"2011-12-29T22:00:00Z 2011-12-29 last", "2011-12-30T22:00:00Z 2011-12-31 last"},
		},
		"almost a day, of 23 hours": {
			ops.ScheduleWindow{Opens: "02:30", Length: 24*hours - 10*minutes, Every: 12*hours - 10*minutes, TimeZone: "Europe/Berlin"},
			"2026-03-29T00:00:00Z",
			[]string{
				"2026-03-29T01:00:00Z 2026-03-29", "2026-03-29T12:50:00Z 2026-03-29 last",
				"2026-03-30T00:30:00Z 2026-03-30", "2026-03-30T12:20:00Z 2026-03-30",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := compileWindow(t, &tc.window)
			var got []string
			at := instant(t, tc.after)
			for range tc.want {
				trigger, ok := w.Next(at)
				if !ok {
					break
				}
				line := trigger.At.Format(time.RFC3339) + " " + trigger.Period
				if trigger.Last {
					line += " last"
				}
				got = append(got, line)
				at = trigger.At
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

var keys = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// S2-11: whatever the clock does, each window has its own period and one last trigger, and from
// any instant on the next trigger is the same.
func TestEachWindowHasItsPeriod(t *testing.T) {
	for _, zone := range []string{"UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns", "Africa/Casablanca", "America/Nuuk", "Pacific/Apia"} {
		for _, w := range []ops.ScheduleWindow{
			{Opens: "00:00", Length: hours},
			{Opens: "02:15", Length: hours, Every: 7 * minutes},
			{Opens: "23:45", Length: 90 * minutes},
			{Opens: "00:00", Length: 24*hours - minutes, Every: 5 * hours},
			{Opens: ":45", Length: 20 * minutes, Every: 4 * minutes, Period: "hour"},
			{Length: 30 * minutes, Period: "30 1,3 * * *"},
		} {
			t.Run(fmt.Sprint(zone, w.Opens, w.Period), func(t *testing.T) {
				w.TimeZone = zone
				compiled := compileWindow(t, &w)
				seen := map[string]bool{}
				for _, span := range []struct{ from, to string }{ // in which the clocks of these zones are changed
					{"2011-03-08T00:00:00Z", "2011-04-05T00:00:00Z"},
					{"2011-09-20T00:00:00Z", "2011-11-10T00:00:00Z"},
					{"2011-12-25T00:00:00Z", "2012-01-03T00:00:00Z"},
				} {
					walkWindows(t, compiled, instant(t, span.from), instant(t, span.to), seen)
				}
			})
		}
	}
}

// walkWindows looks at each trigger in a span. seen are the periods before it.
func walkWindows(t *testing.T, w *calendar.Window, at, end time.Time, seen map[string]bool) {
	t.Helper()
	var before calendar.Trigger
	for at.Before(end) {
		trigger, ok := w.Next(at)
		if !ok || !trigger.At.After(at) || trigger.At.Before(trigger.Opens) || !trigger.At.Before(trigger.Closes) || !keys.MatchString(trigger.Period) {
			t.Fatalf("after %s: got %+v", at, trigger)
		}
		if again, _ := w.Next(trigger.At.Add(-time.Millisecond)); again != trigger {
			t.Fatalf("just before %+v: got %+v", trigger, again)
		}
		at = trigger.At
		switch isNew := !trigger.Opens.Equal(before.Opens); {
		case before.At.IsZero(): // it may have been open when the span began
		case !isNew && (before.Last || trigger.Period != before.Period):
			t.Fatalf("got %+v after %+v in one window", trigger, before)
		case isNew && (!before.Last || trigger.Opens.Before(before.Closes)):
			t.Fatalf("got %+v after %+v", trigger, before)
		case isNew && seen[trigger.Period] && !sharesHour(trigger, before):
			t.Fatalf("the period of %+v was before", trigger)
		}
		seen[trigger.Period] = true
		before = trigger
	}
}

// sharesHour tells whether two windows are in one hour, which half an hour that comes twice makes
// longer.
func sharesHour(a, b calendar.Trigger) bool {
	return a.Period == b.Period && strings.HasSuffix(a.Period, "Z") && a.Opens.Sub(b.Opens) <= 90*time.Minute
}

// S2-12: any instant is in one period, and periods follow one another.
func TestPeriods(t *testing.T) {
	for _, tc := range []struct{ period, zone, at, key, opens, closes string }{
		{"day", "", "2026-11-28T13:14:15Z", "2026-11-28", "2026-11-28T00:00:00Z", "2026-11-29T00:00:00Z"},
		{"", "Europe/Berlin", "2026-11-28T23:14:15Z", "2026-11-29", "2026-11-28T23:00:00Z", "2026-11-29T23:00:00Z"},
		{"day", "Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-29", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"day", "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		{"day", "Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{"week", "", "2026-11-29T23:59:59Z", "2026-W48", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"},
		{"week", "", "2027-01-01T00:00:00Z", "2026-W53", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z"},
		{"month", "", "2026-12-31T23:59:59Z", "2026-12", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"hour", "Asia/Kathmandu", "2026-11-28T13:14:15Z", "2026-11-28T1215Z", "2026-11-28T12:15:00Z", "2026-11-28T13:15:00Z"},
		{"hour", "Europe/Berlin", "2026-10-25T01:59:59Z", "2026-10-25T0100Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"},
		{"0 0 29 2 *", "", "2026-11-28T13:14:15Z", "20240229T000000Z", "2024-02-29T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"*/10 * * * * *", "", "2026-11-28T13:14:15Z", "20261128T131410Z", "2026-11-28T13:14:10Z", "2026-11-28T13:14:20Z"},
	} {
		key, opens, closes, err := calendar.PeriodOf(tc.period, tc.zone, instant(t, tc.at))
		if err != nil {
			t.Errorf("%q in %q: %v", tc.period, tc.zone, err)
		}
		got := []string{key, opens.Format(time.RFC3339), closes.Format(time.RFC3339)}
		if want := []string{tc.key, tc.opens, tc.closes}; !slices.Equal(got, want) {
			t.Errorf("%q in %q at %s: got %q, want %q", tc.period, tc.zone, tc.at, got, want)
		}
		for _, at := range []time.Time{opens, closes.Add(-1)} {
			if again, _, _, err := calendar.PeriodOf(tc.period, tc.zone, at); err != nil || again != key {
				t.Errorf("%q in %q at %s: got %q (%v), want %q", tc.period, tc.zone, at, again, err, key)
			}
		}
		if next, begins, _, err := calendar.PeriodOf(tc.period, tc.zone, closes); err != nil || next == key || !begins.Equal(closes) {
			t.Errorf("%q in %q at %s: got %q from %s (%v)", tc.period, tc.zone, closes, next, begins, err)
		}
	}
}

// S2-11, S2-12: what cannot be meant is refused; the error names the field, and the way out.
func TestBadWindows(t *testing.T) {
	for name, tc := range map[string]struct {
		window      ops.ScheduleWindow
		field, hint string
	}{
		"nothing":            {ops.ScheduleWindow{}, "window.opens", "02:00"},
		"no length":          {ops.ScheduleWindow{Opens: "02:00"}, "window.length", "1h"},
		"negative length":    {ops.ScheduleWindow{Opens: "02:00", Length: -5 * hours}, "window.length", "1h"},
		"no time":            {ops.ScheduleWindow{Opens: "2 o'clock", Length: hours}, "window.opens", "02:00"},
		"24:00":              {ops.ScheduleWindow{Opens: "24:00", Length: hours}, "window.opens", "02:00"},
		"a day long":         {ops.ScheduleWindow{Opens: "02:00", Length: 24 * hours}, "window.length", "shorter than 24h"},
		"a week long":        {ops.ScheduleWindow{Opens: "02:00", Length: 168 * hours, Period: "week"}, "window.length", "shorter than 168h"},
		"longer than cron":   {ops.ScheduleWindow{Length: 10 * minutes, Period: "*/10 * * * *"}, "window.length", "shorter than 10m"},
		"minute 60":          {ops.ScheduleWindow{Opens: ":60", Length: minutes, Period: "hour"}, "window.opens", ":15"},
		"cron and opens":     {ops.ScheduleWindow{Opens: "02:00", Length: minutes, Period: "@daily"}, "window.opens", "leave opens out"},
		"unknown period":     {ops.ScheduleWindow{Opens: "02:00", Length: minutes, Period: "fortnight"}, "window.period", "day, week, month, hour"},
		"cron that never is": {ops.ScheduleWindow{Length: minutes, Period: "0 0 30 2 *"}, "window.period", "days that exist"},
		"no zone":            {ops.ScheduleWindow{Opens: "02:00", Length: minutes, TimeZone: "Berlin"}, "window.timeZone", "Europe/Berlin"},
		"every is negative":  {ops.ScheduleWindow{Opens: "02:00", Length: minutes, Every: -minutes}, "window.every", "5 minutes"},
		"every is too long":  {ops.ScheduleWindow{Opens: "02:00", Length: hours, Every: 2 * hours}, "window.every", "several triggers"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := calendar.CompileWindow(&tc.window)
			refused(t, err, tc.field, tc.hint)
		})
	}
	_, _, _, err := calendar.PeriodOf("fortnight", "", time.Unix(0, 0))
	refused(t, err, "period", "day, week, month, hour")
	if !strings.Contains(err.Error(), `no period "fortnight"`) {
		t.Errorf("got %v, want what is no period", err)
	}
	_, _, _, err = calendar.PeriodOf("day", "Nowhere", time.Unix(0, 0))
	refused(t, err, "timeZone", "IANA")
	_, _, _, err = calendar.PeriodOf("day", "", time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC))
	refused(t, err, "period", "1970 to 2261")
}
