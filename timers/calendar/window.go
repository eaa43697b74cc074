package calendar

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	usualEvery  = 5 * time.Minute
	usualPeriod = "day"
)

// Window is a fire-once window, ready to be evaluated. It does not change: any number of
// goroutines may use it.
type Window struct {
	length, every time.Duration
	openings      *spec
	period        *period
}

// Trigger is an instant at which nodes try to start the run of a window.
type Trigger struct {
	At time.Time
	// Period names the period of the window. It has letters, digits and hyphens only.
	Period string
	// Opens and Closes bound the window; Closes is not in it.
	Opens, Closes time.Time
	// Last says that no other trigger comes in this window.
	Last bool
}

// CompileWindow judges a window. The error is a [*schemas.Error] that names the field, such as
// window.opens.
func CompileWindow(w *ops.ScheduleWindow) (*Window, error) {
	compiled, err := compileWindow(w)
	if err != nil {
		return nil, err
	}
	return compiled, nil
}

func compileWindow(w *ops.ScheduleWindow) (*Window, *schemas.Error) {
	p, err := compilePeriod(cmp.Or(w.Period, usualPeriod), w.TimeZone)
	if err != nil {
		return nil, err.InField("window." + err.Field)
	}
	compiled := &Window{period: p, length: w.Length.Std(), every: w.Every.Std()}
	if compiled.openings, err = p.openings(w.Opens); err != nil {
		return nil, err
	}
	if compiled.every == 0 {
		compiled.every = usualEvery
		if compiled.length > 0 {
			compiled.every = min(usualEvery, compiled.length)
		}
	}
	switch {
	case compiled.length < time.Second:
		return nil, invalid("window.length", "a window of %v is too short", w.Length).
			WithHint("say how long it is open, a second or more: 1h")
	case compiled.length >= p.shortest():
		return nil, invalid("window.length", "a window of %v is not shorter than its period, %s",
			w.Length, p.name).
			WithHint("make the window shorter than %v, or the period longer", p.shortest())
	case compiled.every < time.Second:
		return nil, invalid("window.every", "triggers each %v are too close", w.Every).
			WithHint("use a second or more, or leave it out for 5 minutes")
	case compiled.every > compiled.length:
		return nil, invalid("window.every",
			"triggers each %v are farther apart than the window is long, %v", w.Every, w.Length).
			WithHint(
				"use several triggers in a window: a trigger that no node lives to see is missed")
	}
	return compiled, nil
}

// openings are the times at which windows open.
func (p *period) openings(opens string) (*spec, *schemas.Error) {
	if p.name == "cron" {
		if opens != "" {
			return nil, invalid("window.opens",
				"the period is a cron expression: it says itself when windows open").
				WithHint("leave opens out")
		}
		return p.begins, nil
	}
	var h, m int
	if p.name == "hour" {
		n, err := strconv.ParseUint(strings.TrimPrefix(opens, ":"), 10, 8)
		if err != nil || n > 59 {
			return nil, invalid("window.opens", "%q is no minute of an hour", opens).
				WithHint(`write it as ":15"`)
		}
		m = int(n)
	} else {
		t, err := time.Parse("15:04", opens)
		if err != nil {
			return nil, invalid("window.opens", "%q is no time of a day", opens).
				WithHint(`write hour and minute, in the zone of timeZone: "02:00"`)
		}
		h, m = t.Hour(), t.Minute()
	}
	s := *p.begins
	s.minute = 1 << m
	if p.name != "hour" {
		s.hour = 1 << h
	}
	return &s, nil
}

// Next returns the first trigger after an instant. ok is false if there will be none.
func (w *Window) Next(after time.Time) (trigger Trigger, ok bool) {
	// The first of these windows is the one that the instant is in, if it is in one.
	for trigger, ok = w.window(after.Add(-w.length)); ok; trigger, ok = w.window(trigger.Opens) {
		if trigger.Opens.After(after) {
			return trigger, true
		}
		at := trigger.Opens.Add((after.Sub(trigger.Opens)/w.every + 1) * w.every)
		if at.Before(trigger.Closes) {
			trigger.At, trigger.Last = at, !at.Add(w.every).Before(trigger.Closes)
			return trigger, true
		}
	}
	return Trigger{}, false
}

// window returns the first trigger of the first window that opens after an instant.
func (w *Window) window(after time.Time) (first Trigger, ok bool) {
	opens, match, ok := w.period.next(w.openings, after)
	if !ok {
		return Trigger{}, false
	}
	closes := opens.Add(w.length)
	if next, _, ok := w.period.next(w.openings, opens); ok {
		closes = earlier(closes, next)
	}
	return Trigger{
		At: opens, Opens: opens, Closes: closes, Period: w.period.key(opens, match),
		Last: !opens.Add(w.every).Before(closes),
	}, true
}
