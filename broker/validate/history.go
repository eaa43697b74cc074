package validate

import (
	"slices"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/codec"
)

// History judges a request for events of a history. The error names the field.
func History(q *schemas.HistoryRequest) *schemas.Error {
	for _, t := range q.Types {
		if err := eventType(t); err != nil {
			return err
		}
	}
	if q.Wait > 0 && q.NewestFirst {
		return schemas.Errorf(schemas.CodeInvalid,
			"what comes is never the newest for long: events are awaited in their order").
			InField("wait").WithHint("leave out wait, or newestFirst")
	}
	return nil
}

func eventType(t schemas.EventType) *schemas.Error {
	if t.Known() {
		return nil
	}
	err := schemas.Errorf(schemas.CodeInvalid, "types: there is no event type %q", t).
		InField("types")
	var names []string
	for _, known := range schemas.EventTypes() {
		names = append(names, string(known))
	}
	slices.Sort(names)
	if near := codec.Nearest(string(t), names); near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	return err.WithHint("docs/reference/events.md has them all")
}
