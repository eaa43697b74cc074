package windows

import (
	"cmp"
	"strings"
	"time"

	"github.com/droverhq/drover/internal/bucketkey"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

const (
	periodPrefix   = "period."
	schedulePrefix = "schedule."
	stateSuffix    = ".state"
	// A key lives so many periods, and no shorter than leastLife.
	lifePeriods = 3
	leastLife   = 8 * 24 * time.Hour
)

// onceKey is the key of a period of a name that callers give.
func onceKey(name, period string) string {
	return periodPrefix + bucketkey.Escape(name) + "." + period
}

// windowKey is the key of a period of a schedule. It has a token more, so that no name that callers
// give meets it.
func windowKey(id, incarnation, period string) string {
	return periodPrefix + bucketkey.Escape(id) + "." + bucketkey.Escape(incarnation) + "." + period
}

// isWindowKey tells the keys of schedules from those of callers.
func isWindowKey(key string) bool {
	return strings.HasPrefix(key, periodPrefix) && strings.Count(key, ".") == 3
}

// life is how long the key of a period is kept.
func life(opens, closes time.Time) time.Duration {
	return max(lifePeriods*closes.Sub(opens), leastLife)
}

// windowLife is how long the key of a window is kept.
func windowLife(w *ops.ScheduleWindow, opens time.Time) time.Duration {
	_, from, to, err := calendar.PeriodOf(cmp.Or(w.Period, "day"), w.TimeZone, opens)
	if err != nil {
		return leastLife
	}
	return life(from, to)
}
