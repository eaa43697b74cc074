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

// Whatever is written, Compile returns, and slots grow; what is refused names a field and a way
// out.
func FuzzCompile(f *testing.F) {
	for _, seed := range []struct{ cron, zone, except string }{
		{"0 0 * * *", "", ""},
		{"*/15 0-5,22/2 L-3,15W,LW * ?", "Europe/Berlin", "SUN"},
		{"5 59 23 31 DEC FRI#2,MONL", "Australia/Lord_Howe", "1-5"},
		{"@weekly", "Pacific/Apia", "7"},
		{"CRON_TZ=UTC * * * * *", "Local", "*"},
		{"@every 1h", "../x", "L"},
		{"0 2 29 2 FRI-MON", "America/St_Johns", "FRI#5"},
	} {
		f.Add(seed.cron, seed.zone, seed.except, int64(1_790_000_000))
	}
	f.Fuzz(func(t *testing.T, cron, zone, except string, unix int64) {
		times := &ops.ScheduleTimes{Cron: []string{cron}, TimeZone: zone}
		if except != "" {
			times.Except = []ops.ScheduleException{{Calendar: &ops.ScheduleCalendar{DayOfWeek: except, Hour: "2-5"}}}
		}
		c, err := calendar.Compile(times)
		if err != nil {
			var e *schemas.Error
			if !errors.As(err, &e) || e.Code != schemas.CodeInvalid || !strings.HasPrefix(e.Field, "times") || e.Hint == "" {
				t.Fatalf("got %#v, want an error that names the field and the way out", err)
			}
			return
		}
		at := time.Unix(unix, 0)
		for range 20 {
			slot, ok := c.Next(at)
			if !ok {
				return
			}
			if !slot.After(at) {
				t.Fatalf("%q in %q: got %s after %s", cron, zone, slot, at)
			}
			if again, _ := c.Next(slot.Add(-1)); !again.Equal(slot) {
				t.Fatalf("%q in %q: got %s just before %s", cron, zone, again, slot)
			}
			at = slot
		}
	})
}
