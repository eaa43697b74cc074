package workflow

import (
	"context"
	"reflect"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// fetched returns an event with its payloads, of which the history may have references only. The
// event of the task is not changed: others have it, too.
func fetched(ctx context.Context, t *decider.Task, e schemas.Event) (schemas.Event, error) {
	for field, p := range schemas.PayloadFields(e.Attributes) {
		if _, ref := p.Ref(); !ref {
			continue
		}
		body, err := t.Payload(ctx, p)
		if err != nil {
			return e, err
		}
		whole := reflect.New(reflect.TypeOf(e.Attributes).Elem())
		whole.Elem().Set(reflect.ValueOf(e.Attributes).Elem())
		whole.Elem().Field(field).SetBytes(body)
		e.Attributes, _ = whole.Interface().(schemas.Attributes)
	}
	return e, nil
}
