package calendar_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

func compile(t testing.TB, times *ops.ScheduleTimes) *calendar.Calendar {
	t.Helper()
	c, err := calendar.Compile(times)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func cron(zone string, expressions ...string) *ops.ScheduleTimes {
	return &ops.ScheduleTimes{Cron: expressions, TimeZone: zone}
}

// next returns up to n slots from an instant on, in the time of the calendar's zone.
func next(t testing.TB, c *calendar.Calendar, from string, n int) []string {
	t.Helper()
	after, err := time.ParseInLocation("2006-01-02 15:04:05", from, c.Zone())
	if err != nil {
		t.Fatal(err)
	}
	var slots []string
	after = after.Add(-1)
	for range n {
		slot, ok := c.Next(after)
		if !ok {
			break
		}
		slots = append(slots, slot.In(c.Zone()).Format("2006-01-02 15:04:05 -0700"))
		after = slot
	}
	return slots
}

// S2-10: the cases at which the libraries for cron are wrong, each of them differently.
func TestWhereTheClockIsChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		zone, cron, from string
		want             []string
	}{
		"Berlin, a named time in the gap": {
			"Europe/Berlin", "30 2 * * *", "2026-03-28 00:00:00",
			[]string{"2026-03-28 02:30:00 +0100", "2026-03-29 03:00:00 +0200", "2026-03-30 02:30:00 +0200"},
		},
		"Berlin, a named time in the fold": {
			"Europe/Berlin", "30 2 * * *", "2026-10-24 00:00:00",
			[]string{"2026-10-24 02:30:00 +0200", "2026-10-25 02:30:00 +0200", "2026-10-26 02:30:00 +0100"},
		},
		"São Paulo, a day without midnight": {
			"America/Sao_Paulo", "0 0 * * *", "2018-11-03 00:00:00",
			[]string{"2018-11-03 00:00:00 -0300", "2018-11-04 01:00:00 -0200", "2018-11-05 00:00:00 -0200"},
		},
		"Lord Howe, a gap of half an hour": {
			"Australia/Lord_Howe", "15 2 * * *", "2026-10-03 00:00:00",
			[]string{"2026-10-03 02:15:00 +1030", "2026-10-04 02:30:00 +1100", "2026-10-05 02:15:00 +1100"},
		},
		"Lord Howe, a fold of half an hour": {
			"Australia/Lord_Howe", "45 1 * * *", "2026-04-04 00:00:00",
			[]string{"2026-04-04 01:45:00 +1100", "2026-04-05 01:45:00 +1100", "2026-04-06 01:45:00 +1030"},
		},
		"day of month and day of week, both": {
			"", "0 0 13 * FRI", "2026-01-01 00:00:00",
			[]string{"2026-02-13 00:00:00 +0000", "2026-03-13 00:00:00 +0000", "2026-11-13 00:00:00 +0000", "2027-08-13 00:00:00 +0000"},
		},
		"Apia, a day that does not exist": {
			"Pacific/Apia", "0 12 * * *", "2011-12-29 00:00:00",
			[]string{"2011-12-29 12:00:00 -1000", "2011-12-31 12:00:00 +1400"},
		},
		"Apia, the midnight of a day that does not exist": {
			"Pacific/Apia", "0 0 30,31 12 *", "2011-12-01 00:00:00",
			[]string{"2011-12-31 00:00:00 +1400", "2012-12-30 00:00:00 +1400"},
		},
		"elapsed time, in the fold": {
			"Europe/Berlin", "*/30 * * * *", "2026-10-25 01:30:00",
			[]string{
				"2026-10-25 01:30:00 +0200", "2026-10-25 02:00:00 +0200", "2026-10-25 02:30:00 +0200",
				"2026-10-25 02:00:00 +0100", "2026-10-25 02:30:00 +0100", "2026-10-25 03:00:00 +0100",
			},
		},
		"elapsed time, in the gap": {
			"Europe/Berlin", "*/30 * * * *", "2026-03-29 01:30:00",
			[]string{"2026-03-29 01:30:00 +0100", "2026-03-29 03:00:00 +0200", "2026-03-29 03:30:00 +0200"},
		},
		"every second hour, in the gap": {
			"Europe/Berlin", "0 */2 * * *", "2026-03-29 00:00:00",
			[]string{"2026-03-29 00:00:00 +0100", "2026-03-29 04:00:00 +0200"},
		},
		"all hours of a day are any hour": {
			"Europe/Berlin", "30 0-23 * * *", "2026-10-25 01:45:00",
			[]string{"2026-10-25 02:30:00 +0200", "2026-10-25 02:30:00 +0100", "2026-10-25 03:30:00 +0100"},
		},
		"two named times in one gap are one slot": {
			"Europe/Berlin", "15,45 2 * * *", "2026-03-29 00:00:00",
			[]string{"2026-03-29 03:00:00 +0200", "2026-03-30 02:15:00 +0200"},
		},
		"a named time and the end of the gap are one slot": {
			"Europe/Berlin", "0 2,3 * * *", "2026-03-29 00:00:00",
			[]string{"2026-03-29 03:00:00 +0200", "2026-03-30 02:00:00 +0200"},
		},
		"all minutes of a named hour, in the fold": {
			"Europe/Berlin", "*/30 2 * * *", "2026-10-25 00:00:00",
			[]string{"2026-10-25 02:00:00 +0200", "2026-10-25 02:30:00 +0200", "2026-10-26 02:00:00 +0100"},
		},
		"Nuuk, a gap over midnight": {
			"America/Nuuk", "30 23 * * *", "2024-03-29 22:00:00",
			[]string{"2024-03-29 23:30:00 -0200", "2024-03-31 00:00:00 -0100", "2024-03-31 23:30:00 -0100"},
		},
		"leap day": {
			"", "0 0 29 2 *", "2023-01-01 00:00:00",
			[]string{"2024-02-29 00:00:00 +0000", "2028-02-29 00:00:00 +0000"},
		},
		"no leap day in 2100": {
			"", "0 0 29 2 *", "2096-03-01 00:00:00", []string{"2104-02-29 00:00:00 +0000"},
		},
		"leap day on a Monday": {
			"", "0 0 29 2 MON", "2024-03-01 00:00:00", []string{"2044-02-29 00:00:00 +0000"},
		},
		"end of the year": {
			"Europe/Berlin", "59 23 31 12 *", "2026-12-31 00:00:00",
			[]string{"2026-12-31 23:59:00 +0100", "2027-12-31 23:59:00 +0100"},
		},
		"offset of seconds": {
			"Africa/Monrovia", "0 12 * * *", "1972-01-06 00:00:00",
			[]string{"1972-01-06 12:00:00 -0044", "1972-01-07 12:00:00 +0000"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := next(t, compile(t, cron(tc.zone, tc.cron)), tc.from, len(tc.want))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
