package alwayson

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/validate"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// The default of when a run is asked to continue as new.
const (
	continueAfter  = time.Hour
	continueEvents = 10_000
)

// judged checks what is added, and fills in its defaults. The error is a [*schemas.Error] that
// names the field.
func judged(a ops.AlwaysOn) (ops.AlwaysOn, error) {
	q := &a.Start
	for _, f := range []struct{ field, value, hint string }{
		{"workflowId", q.WorkflowID, "say under which workflow id it is to run"},
		{"type", q.Type, "say which type of workflow is to run"},
	} {
		field := "alwaysOn.start." + f.field
		if err := schemas.ValidateID(field, f.value); err != nil {
			return a, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField(field).WithHint("%s",
				f.hint)
		}
	}
	if err := a.Restart.Validate("alwaysOn.restart"); err != nil {
		return a, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("alwaysOn.restart").
			WithHint("leave it out for %s", ops.RestartAlways)
	}
	if err := notOurs(q); err != nil {
		return a, err
	}
	begun := *q
	begun.Run = "x"
	if err := validate.Start(&begun); err != nil {
		e := *err
		e.Field = "alwaysOn.start." + e.Field
		return a, &e
	}
	if _, is := q.Input.Ref(); is {
		return a, schemas.Errorf(schemas.CodeInvalid, "alwaysOn.start.input is a reference to a "+
			"stored payload, which goes when no history names it").InField("alwaysOn.start.input").
			WithHint("put the input itself there, or where the workflow finds it")
	}
	if a.Restart == "" {
		a.Restart = ops.RestartAlways
	}
	if q.Continuation == nil {
		q.Continuation = &schemas.ContinuationPolicy{
			After: schemas.Duration(continueAfter), Events: continueEvents,
		}
	}
	return a, nil
}

// notOurs refuses fields that are the monitor's own.
func notOurs(q *schemas.StartRequest) error {
	for _, f := range []struct {
		field string
		given bool
	}{
		{"run", q.Run != ""},
		{"requestId", q.RequestID != ""},
		{"startMode", q.StartMode != ""},
		{"notAfter", q.NotAfter != 0},
		{"idReusePolicy", q.IDReusePolicy != ""},
		{"idConflictPolicy", q.IDConflictPolicy != ""},
		{"signal", q.Signal != nil},
		{"origin", q.Origin != nil},
		{"replays", q.Replays != nil},
		{"replyTo", q.ReplyTo != ""},
		{"content", q.Content != ""},
	} {
		if f.given {
			field := "alwaysOn.start." + f.field
			return schemas.Errorf(schemas.CodeInvalid,
				"%s is given: each run of an always-on workflow has its own, which the monitor makes",
				field).
				InField(field).WithHint("leave it out")
		}
	}
	return nil
}

// startable refuses a type that may not be started, if that is known. Who cannot be asked is no
// reason to refuse.
func (m *Monitor) startable(ctx context.Context, q *schemas.StartRequest) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	t, err := m.client.DescribeType(ctx, schemas.WorkflowKind, q.Type, q.TypeVersion)
	name := &schemas.TypeRequest{Kind: schemas.WorkflowKind, Name: q.Type, Version: q.TypeVersion}
	switch {
	case err == nil && t.Status == schemas.TypeDeprecated:
		return schemas.Errorf(schemas.CodeDeprecated, "the type %s is deprecated", name).
			InField("alwaysOn.start.type").
			WithHint("start another version of it, or undo that: drover type undeprecate %s", name)
	case errors.Is(err, drover.ErrNotFound) && m.o.RequireTypes:
		return schemas.Errorf(schemas.CodeNotFound,
			"the type %s is not registered, and the namespace demands it", name).
			InField("alwaysOn.start.type").
			WithHint("register it: drover type register %s", name)
	}
	return nil
}
