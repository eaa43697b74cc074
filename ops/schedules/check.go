package schedules

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/validate"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

const (
	mostNote = 1024
	// largestSchedule is how large a schedule may be as JSON, bytes: its state stands beside it in
	// one answer.
	largestSchedule = 256 << 10
	hintRequest     = "the schedule gives each start its own: leave it out"
)

func invalid(field, format string, args ...any) *schemas.Error {
	return schemas.Errorf(schemas.CodeInvalid, field+": "+format, args...).InField(field)
}

// in puts the name of what it is in before the field of an error.
func in(prefix string, err error) error {
	e, ok := errors.AsType[*schemas.Error](err)
	if !ok {
		return err
	}
	c := *e
	c.Field = strings.TrimSuffix(prefix+e.Field, ".")
	return &c
}

// checkID judges the id of a schedule.
func checkID(field, id string) error {
	if err := schemas.ValidateID(field, id); err != nil {
		return schemas.Errorf(schemas.CodeInvalid, "%v", err).InField(field).
			WithHint("use 1 to %d bytes of text without control characters", schemas.MaxIDLen)
	}
	return nil
}

// check judges a schedule, and returns what may not be meant as it is. Errors name the field, from
// the schedule on.
func (t *turn) check(
	ctx context.Context, s *ops.Schedule, now time.Time,
) (warnings []string, err error) {
	if err := checkID("id", s.ID); err != nil {
		return nil, err
	}
	if warnings, err = checkTimes(s, now); err != nil {
		return nil, err
	}
	if err := checkRules(s); err != nil {
		return nil, err
	}
	if body, err := schemas.MarshalJSON(s); err != nil {
		return nil, err
	} else if len(body) > largestSchedule {
		return nil, schemas.Errorf(schemas.CodeTooLarge, "the schedule has %d bytes; want at "+
			"most %d", len(body), largestSchedule).InField("action").
			WithHint("let the workflow fetch what is large itself, and hand over where it stands")
	}
	if err := t.checkAction(ctx, &s.Action); err != nil {
		return nil, err
	}
	if a := s.Action.Start; a != nil && a.WorkflowID != "" && s.Overlap == ops.OverlapAllow &&
		a.IDConflictPolicy == "" && a.Signal == nil {
		warnings = append(warnings,
			"all runs have one workflow id, so a slot is refused while a run of it is open, "+
				"although overlap is allow: leave out action.start.workflowId, "+
				"and each slot has an id of its own")
	}
	return warnings, nil
}

func checkTimes(s *ops.Schedule, now time.Time) (warnings []string, err error) {
	switch {
	case s.Times == nil && s.Window == nil:
		return nil, invalid("times",
			"the schedule says neither when it is due nor in which window").
			WithHint("give times, such as {\"cron\": [\"0 8 * * MON-FRI\"]}, or window")
	case s.Times != nil && s.Window != nil:
		return nil, invalid("window", "the schedule has times and a window").
			WithHint("leave out one of them; for both make two schedules")
	case s.Window != nil:
		if s.Overlap != "" && s.Overlap != ops.OverlapSkip {
			return nil, invalid("overlap",
				"a window begins one run a period, and takes no overlap policy").
				WithHint("leave it out")
		}
		_, err := calendar.CompileWindow(s.Window)
		return nil, err
	}
	cal, err := calendar.Compile(s.Times)
	if err != nil {
		return nil, err
	}
	if err := cal.Check(now); err != nil {
		return nil, err
	}
	return cal.Warnings(), nil
}

func checkRules(s *ops.Schedule) error {
	if err := s.Overlap.Validate("overlap"); err != nil {
		return schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("overlap")
	}
	switch c := s.CatchUp; {
	case c == 0, c == schemas.Unlimited:
	case c < 0:
		return invalid("catchUp", "it is negative").WithHint(
			"give seconds or a duration such as 1h, NONE for no limit, or leave it out for a year")
	case c.Std() < leastCatchUp:
		return invalid("catchUp",
			"%v is less than what a change of the master takes; want at least %v",
			c.Std(), leastCatchUp)
	}
	if s.Remaining != nil && *s.Remaining < 0 {
		return invalid("remaining", "it is %d; want how many slots are still to be done",
			*s.Remaining).WithHint("leave it out for no limit")
	}
	if s.PausedUntil != 0 && !s.Paused {
		return invalid("pausedUntil", "the schedule is not paused").
			WithHint("give paused too, or leave it out")
	}
	if len(s.Note) > mostNote {
		return invalid("note", "%d bytes; want at most %d", len(s.Note), mostNote)
	}
	return nil
}

// checkAction judges what a schedule does.
func (t *turn) checkAction(ctx context.Context, a *ops.ScheduleAction) error {
	switch {
	case a.Start == nil && a.Signal == nil:
		return invalid("action", "it says neither start nor signal").
			WithHint("give start with a type, or signal with a workflowId and a name")
	case a.Start != nil && a.Signal != nil:
		return invalid("action.signal", "the action has a start and a signal").
			WithHint("for a signal-with-start put the signal into start, as start.signal")
	case a.Signal != nil:
		return in("action.signal.", checkSignal(a.Signal))
	}
	if err := checkStart(a.Start); err != nil {
		return in("action.start.", err)
	}
	return in("action.start.", t.checkType(ctx, a.Start))
}

func checkSignal(q *schemas.SignalRequest) error {
	for _, f := range []struct{ field, value string }{{"workflowId", q.WorkflowID}, {"name", q.Name}} {
		if err := schemas.ValidateID(f.field, f.value); err != nil {
			return schemas.Errorf(schemas.CodeInvalid, "%v", err).InField(f.field)
		}
	}
	if q.RequestID != "" {
		return invalid("requestId", "it would be that of all slots").WithHint(hintRequest)
	}
	return checkPlaceholders("input", q.Input)
}

func checkStart(q *schemas.StartRequest) error {
	for _, f := range []struct {
		field string
		given bool
	}{
		{"run", q.Run != ""},
		{"requestId", q.RequestID != ""},
		{"startMode", q.StartMode != ""},
		{"notAfter", q.NotAfter != 0},
		{"origin", q.Origin != nil},
		{"replays", q.Replays != nil},
		{"replyTo", q.ReplyTo != ""},
		{"content", q.Content != ""},
		{"signal.requestId", q.Signal != nil && q.Signal.RequestID != ""},
		{"attributes.schedule", has(q.Attributes, "schedule")},
		{"attributes.slot", has(q.Attributes, "slot")},
	} {
		if f.given {
			return invalid(f.field, "it is not for a schedule to say").WithHint(hintRequest)
		}
	}
	filled := *q
	filled.WorkflowID, filled.Run = cmp.Or(q.WorkflowID, "x"), "x"
	if err := validate.Start(&filled); err != nil {
		return err
	}
	if err := checkPlaceholders("input", q.Input); err != nil || q.Signal == nil {
		return err
	}
	return checkPlaceholders("signal.input", q.Signal.Input)
}

func has(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}

// checkType refuses a type that may not be started now. One that is deprecated later has its slots
// refused.
func (t *turn) checkType(ctx context.Context, q *schemas.StartRequest) error {
	info, err := t.engine.Type(ctx, q.Type, q.TypeVersion)
	name := schemas.TypeRequest{Kind: schemas.WorkflowKind, Name: q.Type, Version: q.TypeVersion}
	switch {
	case err != nil:
		return err
	case info != nil && info.Status == schemas.TypeDeprecated:
		return schemas.Errorf(schemas.CodeDeprecated, "the type %s is deprecated", &name).
			InField("type").
			WithHint("name another version of it, or undo that: drover type undeprecate %s", &name)
	case info == nil && t.o.RequireTypes:
		return schemas.Errorf(schemas.CodeNotFound,
			"the type %s is not registered, and the namespace demands it", &name).InField("type").
			WithHint("register it: drover type register %s", &name)
	}
	return nil
}
