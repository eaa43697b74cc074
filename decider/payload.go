package decider

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/droverhq/drover/schemas"
)

// payloadPatience bounds how long a large payload is tried to be moved while nothing moves; the deadline of the task bounds
// it too.
const payloadPatience = 30 * time.Second

// Payload returns the content of a payload of the task: of an event, a [View], or [Task.Context]. One above
// [schemas.PayloadThreshold] stands there as a reference, which [schemas.Payload.Decode] refuses; it is fetched through the
// API and checked, each time anew. Every other payload is returned as it is, so all may be passed through. A decider that
// hands a payload on need not fetch it: the reference does as input or result.
//
// What a decider hands over itself, in decisions and by SetContext, may be large: the worker stores it when Decide has
// returned, within the task's deadline.
//
// An error wraps [ErrPayload].
func (t *Task) Payload(ctx context.Context, p schemas.Payload) (schemas.Payload, error) {
	ref, ok := p.Ref()
	if !ok {
		return p, nil
	}
	if t.payloads == nil {
		return nil, fmt.Errorf("%w: the task has no worker, and object %s is elsewhere", ErrPayload, ref.Object)
	}
	content, err := t.payloads.Download(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return content, nil
}

// spill stores what is too large for a message, in the context and in the decisions, and puts references in its place. The
// author's values stay as they are.
func (t *Task) spill(ctx context.Context, decisions []schemas.Decision) ([]schemas.Decision, error) {
	if t.payloads == nil {
		return decisions, nil
	}
	var err error
	if t.context, err = t.payloads.Spill(ctx, t.context); err != nil {
		return nil, fmt.Errorf("%w: context: %w", ErrPayload, err)
	}
	copied := false
	for i, d := range decisions {
		small, err := t.spillDecision(ctx, d)
		if err != nil {
			return nil, fmt.Errorf("%w: decision %d, %s: %w", ErrPayload, i+1, d.Type(), err)
		}
		if small != nil && !copied {
			decisions, copied = slices.Clone(decisions), true
		}
		if small != nil {
			decisions[i] = schemas.Decide(small)
		}
	}
	return decisions, nil
}

// spillDecision returns nil if there is nothing to store. State values are compared byte by byte with what others have set,
// so they stay as they are.
func (t *Task) spillDecision(ctx context.Context, d schemas.Decision) (schemas.DecisionAttributes, error) {
	if _, ok := d.Attributes.(*schemas.SetState); ok {
		return nil, nil
	}
	var changed reflect.Value
	for i, p := range schemas.PayloadFields(d.Attributes) {
		if len(p) <= schemas.PayloadThreshold {
			continue
		}
		small, err := t.payloads.Spill(ctx, p)
		if err != nil {
			return nil, err
		}
		if given := reflect.ValueOf(d.Attributes); !changed.IsValid() {
			changed = reflect.New(given.Elem().Type())
			changed.Elem().Set(given.Elem())
		}
		changed.Elem().Field(i).Set(reflect.ValueOf(small))
	}
	if !changed.IsValid() {
		return nil, nil
	}
	attributes, _ := changed.Interface().(schemas.DecisionAttributes)
	return attributes, nil
}
