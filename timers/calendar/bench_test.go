package calendar_test

import (
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

func BenchmarkNext(b *testing.B) {
	for name, times := range map[string]*ops.ScheduleTimes{
		"minute":          cron("Europe/Berlin", "* * * * *"),
		"daily":           cron("Europe/Berlin", "30 2 * * *"),
		"leap day Monday": cron("Europe/Berlin", "0 0 29 2 MON"),
		"interval":        {Every: []ops.ScheduleInterval{{Every: schemas.Seconds(60)}}},
		"without nights": {
			Every: []ops.ScheduleInterval{{Every: schemas.Seconds(1)}}, From: schemas.At(time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)),
			Except: []ops.ScheduleException{{Calendar: &ops.ScheduleCalendar{Hour: "22,23,0-5"}}},
		},
	} {
		b.Run(name, func(b *testing.B) {
			c := compile(b, times)
			after := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := c.Next(after); !ok {
					b.Fatal("no slot")
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := calendar.Compile(cron("Europe/Berlin", "30 2 * * MON-FRI")); err != nil {
			b.Fatal(err)
		}
	}
}
