package calendar_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// Expressions that say the same in different words have the same slots.
func TestSameSlots(t *testing.T) {
	for _, same := range [][]string{
		{"@hourly", "0 * * * *", "0 0 * * * *", "  0   *  * * ?  ", "0 0-23 * * *"},
		{"@daily", "@midnight", "@DAILY", "0 0 * * *", "0 0 1-31 1-12 0-6", "0 0 * * 0-7", "0 0 * * SUN-SAT", "0 0 */1 * *"},
		{"@weekly", "0 0 * * 0", "0 0 * * 7", "0 0 * * sun", "0 0 ? * SUN"},
		{"@monthly", "0 0 1 * *"},
		{"@yearly", "@annually", "0 0 1 1 *", "0 0 1 Jan *"},
		{"0 9 * * 1-5", "0 9 * * MON-FRI", "0 9 * * mon,Tue,WED,THU,5"},
		{"0 9 * * FRI-MON", "0 9 * * 5-1", "0 9 * * 5,6,7,1", "0 9 * * 5-7,1"},
		{"0 9 1 NOV-FEB *", "0 9 1 11,12,1,2 *", "0 9 1 11-2 *"},
		{"*/15 * * * *", "0-59/15 * * * *", "0,15,30,45 * * * *", "0/15 * * * *"},
		{"10-40/10 8 * * *", "10,20,30,40 8 * * *"},
		{"0 8 L * *", "0 8 L-0 * *", "0 8 l * *"},
		{"0 8 LW * *", "0 8 WL * *", "0 8 lw * *"},
		{"0 8 * * FRI#2", "0 8 * * 5#2", "0 8 8-14 * FRI"},
		{"0 8 * * FRIL", "0 8 * * 5L", "0 8 * * friL"},
		{"0 8 * * SUNL", "0 8 * * 7L", "0 8 * * 0L"},
		{"5 0 9 * * *", "5 0 9 * * ?"},
		{"*/20 * * * * *", "0,20,40 * * * * *"},
	} {
		for _, zone := range []string{"", "Europe/Berlin"} {
			want := next(t, compile(t, cron(zone, same[0])), "2026-01-01 00:00:00", 100)
			for _, other := range same[1:] {
				if diff := cmp.Diff(want, next(t, compile(t, cron(zone, other)), "2026-01-01 00:00:00", 100)); diff != "" {
					t.Errorf("%s and %s (-%[1]s +%[2]s):\n%s", same[0], other, diff)
				}
			}
		}
	}
}

func TestSlots(t *testing.T) {
	at := func(text string) schemas.Timestamp {
		var ts schemas.Timestamp
		if err := ts.UnmarshalJSON([]byte(`"` + text + `"`)); err != nil {
			t.Fatal(err)
		}
		return ts
	}
	daily := []string{"0 12 * * *"}
	for name, tc := range map[string]struct {
		times ops.ScheduleTimes
		from  string
		want  []string
	}{
		"seconds first": {
			ops.ScheduleTimes{Cron: []string{"59 59 23 31 12 *"}},
			"2026-01-01 00:00:00",
			[]string{"2026-12-31 23:59:59", "2027-12-31 23:59:59"},
		},
		"last but three": {
			ops.ScheduleTimes{Cron: []string{"0 0 L-3 * *"}}, "2026-01-01 00:00:00", []string{"2026-01-28 00:00:00", "2026-02-25 00:00:00"},
		},
		"the 15th is a Sunday, a Saturday": {
			ops.ScheduleTimes{Cron: []string{"0 0 15W 2,8 *"}}, "2026-01-01 00:00:00", []string{"2026-02-16 00:00:00", "2026-08-14 00:00:00"},
		},
		"the 1st is a Saturday, the 31st a Sunday": {
			ops.ScheduleTimes{Cron: []string{"0 0 1W 8 *", "0 0 31W 5 *"}}, "2026-01-01 00:00:00", []string{"2026-05-29 00:00:00", "2026-08-03 00:00:00"},
		},
		"no 31st, no W": {
			ops.ScheduleTimes{Cron: []string{"0 0 31W 3,4,7 *"}}, "2026-03-01 00:00:00", []string{"2026-03-31 00:00:00", "2026-07-31 00:00:00"},
		},
		"the last weekday": {
			ops.ScheduleTimes{Cron: []string{"0 0 LW 1,2 *"}}, "2026-01-01 00:00:00", []string{"2026-01-30 00:00:00", "2026-02-27 00:00:00"},
		},
		"a calendar begins at midnight": {
			ops.ScheduleTimes{Calendar: []ops.ScheduleCalendar{{DayOfMonth: "24", Month: "DEC"}}},
			"2026-01-01 00:00:00",
			[]string{"2026-12-24 00:00:00", "2027-12-24 00:00:00"},
		},
		"a calendar with years": {
			ops.ScheduleTimes{Calendar: []ops.ScheduleCalendar{{Second: "5", Minute: "4", Hour: "3", DayOfMonth: "2", Month: "1", Year: "2027-2030/3"}}},
			"2026-01-01 00:00:00",
			[]string{"2027-01-02 03:04:05", "2030-01-02 03:04:05"},
		},
		"the union has each slot once": {
			ops.ScheduleTimes{
				Cron:  []string{"0 0,12 1 1 *", "0 12 1 1 *"},
				Every: []ops.ScheduleInterval{{Every: schemas.Seconds(6 * 3600)}},
				At:    []schemas.Timestamp{at("2026-01-01T12:00:00Z"), at("2026-01-01T07:00:00Z"), at("2026-01-01T07:00:00Z")},
			},
			"2026-01-01 00:00:00",
			[]string{"2026-01-01 00:00:00", "2026-01-01 06:00:00", "2026-01-01 07:00:00", "2026-01-01 12:00:00", "2026-01-01 18:00:00"},
		},
		"an interval with an offset": {
			ops.ScheduleTimes{Every: []ops.ScheduleInterval{{Every: schemas.Seconds(3600), Offset: schemas.Seconds(300)}}},
			"2026-01-01 00:10:00",
			[]string{"2026-01-01 01:05:00", "2026-01-01 02:05:00"},
		},
		"from is in it, until is not": {
			ops.ScheduleTimes{Cron: daily, From: at("2026-01-02T12:00:00Z"), Until: at("2026-01-04T12:00:00Z")},
			"2026-01-01 00:00:00",
			[]string{"2026-01-02 12:00:00", "2026-01-03 12:00:00"},
		},
		"without a day": {
			ops.ScheduleTimes{Cron: daily, Except: []ops.ScheduleException{{Date: "2026-01-02"}}, Until: at("2026-01-05T00:00:00Z")},
			"2026-01-01 00:00:00",
			[]string{"2026-01-01 12:00:00", "2026-01-03 12:00:00", "2026-01-04 12:00:00"},
		},
		"without some days": {
			ops.ScheduleTimes{Cron: daily, Except: []ops.ScheduleException{{From: "2026-01-02", Until: "2026-01-03"}}, Until: at("2026-01-06T00:00:00Z")},
			"2026-01-01 00:00:00",
			[]string{"2026-01-01 12:00:00", "2026-01-04 12:00:00", "2026-01-05 12:00:00"},
		},
		"without all days before and after": {
			ops.ScheduleTimes{Cron: daily, Except: []ops.ScheduleException{{Until: "2026-01-02"}, {From: "2026-01-05"}}},
			"2026-01-01 00:00:00",
			[]string{"2026-01-03 12:00:00", "2026-01-04 12:00:00"},
		},
		"an exception without a time of day takes the whole day": {
			ops.ScheduleTimes{
				Cron: []string{"0 */12 * * *"}, Until: at("2026-01-05T00:00:00Z"),
				Except: []ops.ScheduleException{{Calendar: &ops.ScheduleCalendar{DayOfWeek: "SAT,SUN"}}},
			},
			"2026-01-01 00:00:00",
			[]string{"2026-01-01 00:00:00", "2026-01-01 12:00:00", "2026-01-02 00:00:00", "2026-01-02 12:00:00"},
		},
		"without a night": {
			ops.ScheduleTimes{
				Every: []ops.ScheduleInterval{{Every: schemas.Seconds(1)}}, From: at("2026-01-01T21:59:59Z"),
				Except: []ops.ScheduleException{{Calendar: &ops.ScheduleCalendar{Hour: "22,23,0-5"}}},
			},
			"2026-01-01 00:00:00",
			[]string{"2026-01-01 21:59:59", "2026-01-02 06:00:00", "2026-01-02 06:00:01"},
		},
		"an hour taken away ends with the hour": {
			ops.ScheduleTimes{
				Cron: []string{"*/30 * * * *"}, Except: []ops.ScheduleException{{Calendar: &ops.ScheduleCalendar{Hour: "2"}}},
			},
			"2026-01-01 02:10:00",
			[]string{"2026-01-01 03:00:00", "2026-01-01 03:30:00"},
		},
		"a minute taken away ends with the minute": {
			ops.ScheduleTimes{
				Cron: []string{"*/30 * * * * *"}, Except: []ops.ScheduleException{{Calendar: &ops.ScheduleCalendar{Minute: "0"}}},
			},
			"2026-01-01 00:00:10",
			[]string{"2026-01-01 00:01:00", "2026-01-01 00:01:30"},
		},
		"without some minutes and seconds": {
			ops.ScheduleTimes{
				Cron: []string{"*/20 * * * * *"},
				Except: []ops.ScheduleException{
					{Calendar: &ops.ScheduleCalendar{Minute: "0-58"}}, {Calendar: &ops.ScheduleCalendar{Second: "20"}},
				},
			},
			"2026-01-01 00:00:00",
			[]string{"2026-01-01 00:59:00", "2026-01-01 00:59:40", "2026-01-01 01:59:00"},
		},
		"exceptions look at the clock of the zone": {
			ops.ScheduleTimes{
				Cron: []string{"30 23 * * *"}, TimeZone: "America/New_York", Except: []ops.ScheduleException{{Date: "2026-01-02"}},
			},
			"2026-01-01 00:00:00",
			[]string{"2026-01-01 23:30:00", "2026-01-03 23:30:00"},
		},
		"an exception takes what the clock shows twice": {
			ops.ScheduleTimes{
				Every: []ops.ScheduleInterval{{Every: schemas.Seconds(3600)}}, TimeZone: "Europe/Berlin",
				Except: []ops.ScheduleException{{Calendar: &ops.ScheduleCalendar{Hour: "2"}}},
			},
			"2026-10-25 01:00:00",
			[]string{"2026-10-25 01:00:00", "2026-10-25 03:00:00"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := compile(t, &tc.times)
			got := next(t, c, tc.from, len(tc.want)+1)
			for i, slot := range got {
				got[i] = slot[:len("2006-01-02 15:04:05")]
			}
			if ends := tc.times.Until != 0 || tc.times.Except != nil && tc.times.Except[len(tc.times.Except)-1].From != ""; !ends && len(got) > len(tc.want) {
				got = got[:len(tc.want)]
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
