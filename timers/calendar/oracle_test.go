package calendar_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// The oracle walks through each minute of five years, looks at what the clock of the zone shows,
// and notes for each expression which minutes are slots. It knows the expressions as lists of
// values, not as text.

// drawn is an expression as text, and what it means.
type drawn struct {
	text    string
	minute  [60]bool
	hour    [24]bool
	elapsed bool
	onDay   func(d date) bool
}

// date is a day as the clock shows it.
type date struct{ year, month, day, weekday, length int }

// lists draws a part that is a list, a range or a step, and returns its values.
func lists(r *rand.Rand, low, high int) (text string, values []int) {
	switch r.IntN(4) {
	case 0:
		n := low + r.IntN(high-low+1)
		return fmt.Sprint(n), []int{n}
	case 1:
		a, b := low+r.IntN(high-low+1), low+r.IntN(high-low+1)
		return fmt.Sprintf("%d,%d", a, b), []int{a, b}
	case 2:
		a := low + r.IntN(high-low)
		b := a + 1 + r.IntN(min(high-a, 3))
		for n := a; n <= b; n++ {
			values = append(values, n)
		}
		return fmt.Sprintf("%d-%d", a, b), values
	default:
		step := 2 + r.IntN((high-low)/2)
		for n := low; n <= high; n += step {
			values = append(values, n)
		}
		return fmt.Sprintf("*/%d", step), values
	}
}

var weekdays = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}

// days draws the three parts that choose the days.
func days(r *rand.Rand) (dayOfMonth, month, dayOfWeek string, on func(d date) bool) {
	var onDay, onMonth, onWeekday func(d date) bool
	always := func(date) bool { return true }
	dayOfMonth, onDay, month, onMonth, dayOfWeek, onWeekday = "*", always, "*", always, "?", always
	switch r.IntN(8) {
	case 0:
		text, values := lists(r, 1, 31)
		dayOfMonth, onDay = text, func(d date) bool { return slices.Contains(values, d.day) }
	case 1:
		back := r.IntN(4)
		dayOfMonth, onDay = fmt.Sprintf("L-%d", back), func(d date) bool { return d.day == d.length-back }
	case 2:
		wanted := 1 + r.IntN(31)
		dayOfMonth, onDay = fmt.Sprintf("%dW", wanted), func(d date) bool { return isNearestWeekday(d, wanted) }
	case 3:
		dayOfMonth, onDay = "LW", func(d date) bool { return isNearestWeekday(d, d.length) }
	case 4:
		a, n := r.IntN(7), 1+r.IntN(6)
		dayOfWeek = weekdays[a] + "-" + weekdays[(a+n)%7]
		onWeekday = func(d date) bool { return (d.weekday-a+7)%7 <= n }
	case 5:
		w, k := r.IntN(7), 1+r.IntN(4)
		dayOfWeek, onWeekday = fmt.Sprintf("%d#%d", w, k), func(d date) bool { return d.weekday == w && (d.day-1)/7 == k-1 }
	case 6:
		w := r.IntN(7)
		dayOfWeek, onWeekday = weekdays[w]+"L", func(d date) bool { return d.weekday == w && d.day > d.length-7 }
	}
	if r.IntN(4) == 0 {
		text, values := lists(r, 1, 12)
		month, onMonth = text, func(d date) bool { return slices.Contains(values, d.month) }
	}
	return dayOfMonth, month, dayOfWeek, func(d date) bool { return onDay(d) && onMonth(d) && onWeekday(d) }
}

// isNearestWeekday tells it by looking at the days around the wanted one, nearest first.
func isNearestWeekday(d date, wanted int) bool {
	if wanted > d.length {
		return false
	}
	for _, off := range []int{0, -1, 1, 2, -2} {
		n := wanted + off
		weekday := ((d.weekday+n-d.day)%7 + 7) % 7
		if n >= 1 && n <= d.length && weekday != 0 && weekday != 6 {
			return d.day == n
		}
	}
	return false
}

// draw draws an expression. Most have times in the hours at which clocks are changed.
func draw(r *rand.Rand) *drawn {
	e := &drawn{}
	minuteText, values := lists(r, 0, 59)
	for _, n := range values {
		e.minute[n] = true
	}
	var hourText string
	switch r.IntN(4) {
	case 0:
		hourText, values = "*", nil
		for n := range 24 {
			values = append(values, n)
		}
	case 1:
		hourText, values = lists(r, 0, 23)
	default:
		n := []int{0, 1, 2, 3, 22, 23}[r.IntN(6)]
		hourText, values = fmt.Sprint(n), []int{n}
	}
	for _, n := range values {
		e.hour[n] = true
	}
	e.elapsed = strings.Contains(hourText, "*")
	dayOfMonth, month, dayOfWeek, on := days(r)
	e.onDay = on
	e.text = strings.Join([]string{minuteText, hourText, dayOfMonth, month, dayOfWeek}, " ")
	return e
}

// walk is the local time of each minute of five years.
type walk struct {
	start time.Time
	local []int32     // what the clock shows, in minutes after start as if it showed UTC
	dates []date      // from the day before start
	shown []bool      // by date: the clock showed some minute of it
	near  []time.Time // instants before, in and after each change
}

const (
	minutesOfDay = 24 * 60
	daysBefore   = 2
)

func walkThrough(t *testing.T, name string, year int) *walk {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	w := &walk{start: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)}
	end := time.Date(year+5, 1, 1, 0, 0, 0, 0, time.UTC)
	for day := w.start.AddDate(0, 0, -daysBefore); day.Before(end.AddDate(0, 0, daysBefore)); day = day.AddDate(0, 0, 1) {
		w.dates = append(w.dates, date{
			day.Year(), int(day.Month()), day.Day(), int(day.Weekday()), day.AddDate(0, 1, -day.Day()).Day(),
		})
	}
	w.shown = make([]bool, len(w.dates))
	w.local = make([]int32, 0, int(end.Sub(w.start)/time.Minute))
	for at := w.start; at.Before(end); at = at.Add(time.Minute) {
		_, offset := at.In(zone).Zone()
		if offset%60 != 0 {
			t.Fatalf("%s at %s: the offset is not in minutes: choose other years", name, at)
		}
		local := int32(len(w.local) + offset/60)
		w.local = append(w.local, local)
		w.shown[w.dateOf(local)] = true
	}
	w.near = w.nearChanges()
	return w
}

func (w *walk) dateOf(local int32) int { return int(local+daysBefore*minutesOfDay) / minutesOfDay }

// slots returns the minutes that are slots of an expression.
func (w *walk) slots(e *drawn) []time.Time {
	var found []time.Time
	passed := w.local[0] // what the clock has shown or passed over
	onDay := make([]bool, len(w.dates))
	for i, d := range w.dates {
		onDay[i] = e.onDay(d)
	}
	var ofDay [minutesOfDay]bool
	for m := range ofDay {
		ofDay[m] = e.minute[m%60] && e.hour[m/60]
	}
	matches := func(local int32) bool {
		n := uint32(local + daysBefore*minutesOfDay)
		return ofDay[n%minutesOfDay] && onDay[n/minutesOfDay]
	}
	for i, local := range w.local {
		is := false
		if e.elapsed {
			is = matches(local)
		} else {
			for ; passed <= local; passed++ {
				if matches(passed) && (passed == local || w.shown[w.dateOf(passed)]) {
					is = true
				}
			}
		}
		if is {
			found = append(found, w.start.Add(time.Duration(i)*time.Minute))
		}
	}
	return found
}

// nearChanges are instants before, in and after each change of the clock.
func (w *walk) nearChanges() (instants []time.Time) {
	for i := 1; i < len(w.local); i++ {
		if w.local[i] != w.local[i-1]+1 {
			for _, minutes := range []int{-61, -30, -1, 0, 1, 10, 29, 45, 59, 61, 110, 121, 1439} {
				instants = append(instants, w.start.Add(time.Duration(i+minutes)*time.Minute))
			}
		}
	}
	return instants
}

// The zones have odd rules in the years from the given one on.
var oddZones = []struct {
	name string
	year int
}{
	{"UTC", 2022},
	{"Europe/Berlin", 2022},
	{"Europe/Dublin", 2022}, // winter time is the one that is saved
	{"America/New_York", 2018},
	{"America/Sao_Paulo", 2015}, // changes at midnight, then no more
	{"Australia/Lord_Howe", 2019},
	{"Pacific/Apia", 2010},       // one day is left out
	{"Asia/Kathmandu", 1984},     // from 5:30 to 5:45
	{"Africa/Casablanca", 2016},  // other time in Ramadan
	{"Africa/Cairo", 2010},       // four changes in one year
	{"Antarctica/Troll", 2016},   // two hours at once
	{"Pacific/Chatham", 2019},    // 2:45
	{"Asia/Gaza", 2010},          // rules of each year
	{"Asia/Tehran", 2018},        // at midnight, then no more
	{"Pacific/Kiritimati", 1993}, // one day is left out
	{"Atlantic/Azores", 2020},    // at midnight, from 0:00 to 1:00 and from 1:00 to 0:00
	{"America/Santiago", 2019},   // at the end of a Saturday
	{"America/Asuncion", 2012},   // at midnight
	{"America/Nuuk", 2021},       // on a Saturday at 22:00, then at 23:00, and a change of the zone
	{"America/St_Johns", 2007},   // at one minute after midnight
	{"Pacific/Kwajalein", 1991},  // one day is left out
	{"America/Havana", 2019},     // from 1:00 to 0:00
}

// S2-10: each slot, and no other one.
func TestEachMinuteOfFiveYears(t *testing.T) {
	for i, zone := range oddZones {
		t.Run(zone.name, func(t *testing.T) {
			t.Parallel()
			w := walkThrough(t, zone.name, zone.year)
			r := rand.New(rand.NewPCG(45, uint64(i)))
			for range 8 {
				compare(t, w, zone.name, draw(r))
			}
			for _, n := range []int{0, 1, 2, 3, 23} { // every day in an hour in which clocks are changed
				e := &drawn{text: fmt.Sprintf("0,5,15,30,45,59 %d * * *", n), onDay: func(date) bool { return true }}
				e.hour[n] = true
				for _, m := range []int{0, 5, 15, 30, 45, 59} {
					e.minute[m] = true
				}
				compare(t, w, zone.name, e)
			}
		})
	}
}

func compare(t *testing.T, w *walk, zone string, e *drawn) {
	t.Helper()
	c := compile(t, cron(zone, e.text))
	want := w.slots(e)
	for _, after := range w.near {
		n, found := slices.BinarySearchFunc(want, after, time.Time.Compare)
		if found {
			n++
		}
		if slot, ok := c.Next(after); n < len(want) && (!ok || !slot.Equal(want[n])) {
			t.Errorf("%s in %s: after %s got %s, want %s", e.text, zone, after.In(c.Zone()), slot.In(c.Zone()), want[n].In(c.Zone()))
			return
		}
	}
	after := w.start.Add(-1)
	end := w.start.Add(time.Duration(len(w.local)) * time.Minute)
	for i := 0; ; i++ {
		slot, ok := c.Next(after)
		if !ok || !slot.Before(end) {
			if i < len(want) {
				t.Errorf("%s in %s: got none from %s on, want %s", e.text, zone, after.In(c.Zone()), want[i].In(c.Zone()))
			}
			return
		}
		if i >= len(want) || !slot.Equal(want[i]) {
			wanted := "none"
			if i < len(want) {
				wanted = want[i].In(c.Zone()).String()
			}
			t.Errorf("%s in %s: after %s got %s, want %s", e.text, zone, after.In(c.Zone()), slot.In(c.Zone()), wanted)
			return
		}
		after = slot
	}
}
