package calendar_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

// Intervals and single instants may be in milliseconds; an instant to look from may be any.
func TestMilliseconds(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	single := begin.Add(1750 * time.Millisecond)
	c := compile(t, &ops.ScheduleTimes{
		Cron: []string{"* * * * * *"}, Every: []ops.ScheduleInterval{{Every: schemas.Seconds(1.5)}}, At: []schemas.Timestamp{schemas.At(single)},
	})
	var got []time.Duration
	at := begin.Add(time.Nanosecond)
	for range 5 {
		at, _ = c.Next(at)
		got = append(got, at.Sub(begin)/time.Millisecond)
	}
	if want := []time.Duration{1000, 1500, 1750, 2000, 3000}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The year 2262 has no slots, whatever comes before it.
func TestLastSlot(t *testing.T) {
	for name, times := range map[string]*ops.ScheduleTimes{
		"cron":     cron("", "0 0 1 * *"),
		"west":     cron("America/New_York", "0 23 31 12 *"),
		"interval": {Every: []ops.ScheduleInterval{{Every: schemas.Seconds(30 * 86400)}}},
		"century":  {Every: []ops.ScheduleInterval{{Every: schemas.Seconds(100 * 365 * 86400), Offset: schemas.Seconds(99 * 365 * 86400)}}},
		"year":     {Calendar: []ops.ScheduleCalendar{{Year: "2261"}}},
	} {
		c := compile(t, times)
		last := time.Date(2160, 1, 1, 0, 0, 0, 0, time.UTC)
		for n := 0; ; n++ {
			slot, ok := c.Next(last)
			if !ok {
				break
			}
			if !slot.After(last) || slot.Year() > 2261 || n > 10_000 {
				t.Fatalf("%s: got %s after %s", name, slot, last)
			}
			last = slot
		}
		for _, after := range []time.Time{time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
			if slot, ok := c.Next(after); ok {
				t.Errorf("%s: got %s after %s, want none", name, slot, after)
			}
		}
		if slot, ok := c.Next(time.Time{}); !ok || slot.IsZero() {
			t.Errorf("%s: got %v, %v after the zero time, want the first slot", name, slot, ok)
		}
	}
}

// S2-10: the delay of a slot is the same on every node, and does not change the order of the
// starts.
func TestDelay(t *testing.T) {
	times := cron("Europe/Berlin", "*/10 * * * *", "3 * * * *")
	times.Jitter = schemas.Seconds(300)
	c, again := compile(t, times), compile(t, times)
	at := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)
	var before time.Time
	var sum time.Duration
	seen := map[time.Duration]bool{}
	const slots = 2000
	for range slots {
		at, _ = c.Next(at)
		delay := c.Delay("nightly", at)
		if delay != again.Delay("nightly", at) {
			t.Fatalf("%s: two delays", at)
		}
		if delay < 0 || delay >= times.Jitter.Std() || delay%time.Millisecond != 0 {
			t.Fatalf("%s: got %s, want less than %s", at, delay, times.Jitter)
		}
		if start := at.Add(delay); !start.After(before) {
			t.Fatalf("the slot %s starts at %s, the one before it at %s", at, start, before)
		}
		if next, _ := c.Next(at); !at.Add(delay).Before(next) {
			t.Fatalf("the slot %s starts at %s, the next one is %s", at, at.Add(delay), next)
		}
		before = at.Add(delay)
		seen[delay] = true
		sum += delay
	}
	if len(seen) < slots/2 {
		t.Errorf("got %d different delays of %d slots", len(seen), slots)
	}
	// Of seven slots in an hour one has 3 minutes at most, and one 7 minutes before it.
	if mean := sum / slots; mean < 120*time.Second || mean > 160*time.Second {
		t.Errorf("the mean delay is %s, want about 141 s", mean)
	}
	if a, b := c.Delay("nightly", at), c.Delay("daily", at); a == b {
		t.Errorf("two schedules have the same delay %s", a)
	}
	if delay := compile(t, cron("", "* * * * *")).Delay("nightly", at); delay != 0 {
		t.Errorf("without a jitter: got %s", delay)
	}
	for ms := range 3 { // each of so few milliseconds comes
		times.Jitter = schemas.Duration(ms+1) * schemas.Duration(time.Millisecond)
		c, seen := compile(t, times), map[time.Duration]bool{}
		for n := range 100 {
			seen[c.Delay(fmt.Sprint(n), at)] = true
		}
		if len(seen) != ms+1 {
			t.Errorf("with a jitter of %s: got %v", times.Jitter, seen)
		}
	}
}

func TestVersionOfZones(t *testing.T) {
	if calendar.TZVersion() == "" {
		t.Error("got none")
	}
}
