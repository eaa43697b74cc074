package calendar

import (
	"time"

	"github.com/droverhq/drover/schemas"
)

// Window is a fire-once window, ready to be evaluated. It does not change: any number of goroutines may use it.
type Window struct{}

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

// CompileWindow judges a window. The error is a [*schemas.Error] that names the field, such as window.opens.
func CompileWindow(w *schemas.ScheduleWindow) (*Window, error) { return &Window{}, nil }

// Next returns the first trigger after an instant. ok is false if there will be none.
func (w *Window) Next(after time.Time) (trigger Trigger, ok bool) { return Trigger{}, false }

// PeriodOf names the period (day, week, month, hour, or a cron expression) of a zone in which an instant lies, and returns
// its bounds; closes is not in it. Key has letters, digits and hyphens only.
func PeriodOf(period, zone string, t time.Time) (key string, opens, closes time.Time, err error) {
	return t.UTC().Format(time.DateOnly), t, t, nil
}
