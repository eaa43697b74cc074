package decider

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/schemas"
)

// payloadPatience bounds how long a large payload is tried to be moved while nothing moves; the
// deadline of the task bounds it too.
const payloadPatience = 30 * time.Second

// Payload returns the content of a payload of the task: of an event, a [View], or [Task.Context].
// One above [schemas.PayloadThreshold], or one that would not have fitted its message beside
// others, stands there as a reference, which [schemas.Payload.Decode] refuses; it is fetched
// through the API and checked, each time anew. Every other payload is returned as it is, so all may
// be passed through. A decider that hands a payload on need not fetch it: the reference does as
// input or result.
//
// What a decider hands over itself, in decisions and by SetContext, may be large: the worker stores
// it when Decide has returned, within the task's deadline.
//
// An error wraps [ErrPayload].
func (t *Task) Payload(ctx context.Context, p schemas.Payload) (schemas.Payload, error) {
	ref, ok := p.Ref()
	if !ok {
		return p, nil
	}
	if t.payloads == nil {
		return nil, fmt.Errorf("%w: the task has no worker, and object %s is elsewhere",
			ErrPayload, ref.Object)
	}
	content, err := t.payloads.Download(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return content, nil
}

const (
	// besideDecision is what an event has beside the decision that it stems from, and replyBudget
	// what a reply has beside its decisions and its context.
	besideDecision, replyBudget = 256, 4 << 10
)

// spill stores what is too large for a message or a record, in the context and in the decisions,
// and puts references in its place: what is above schemas.PayloadThreshold, and then the largest
// until the reply fits. The author's values stay as they are.
func (t *Task) spill(
	ctx context.Context, decisions []schemas.Decision,
) ([]schemas.Decision, error) {
	if t.payloads == nil {
		return decisions, nil
	}
	all, bytes := t.portions(decisions)
	if bytes+besideDecision*len(decisions) <= replyBudget {
		return decisions, nil
	}
	most := payloads.RecordLimit(t.payloads.MaxPayload()) - besideDecision*len(
		decisions) - replyBudget
	fields := make([]*schemas.Payload, len(all))
	for i := range all {
		fields[i] = &all[i].content
	}
	copied := false
	for {
		moved := payloads.Excess(fields, t.replySize(decisions), schemas.PayloadThreshold, most)
		if len(moved) == 0 {
			return decisions, nil
		}
		if !copied {
			decisions, copied = slices.Clone(decisions), true
		}
		for i, f := range fields {
			if !slices.Contains(moved, f) {
				continue
			}
			ref, err := t.payloads.Move(ctx, *f)
			if err != nil {
				return nil, fmt.Errorf("%w: %s: %w", ErrPayload, all[i].name(decisions), err)
			}
			*f = ref
			t.put(decisions, &all[i])
		}
	}
}

// portion is a payload of a reply, and where it stands: in a field of a decision, or, if that is
// negative, in the context.
type portion struct {
	content         schemas.Payload
	decision, field int
}

func (p *portion) name(decisions []schemas.Decision) string {
	if p.decision < 0 {
		return "context"
	}
	return fmt.Sprintf("decision %d, %s", p.decision+1, decisions[p.decision].Type())
}

// portions are the payloads of a reply that may stand elsewhere, and how many bytes they have.
// State values are compared byte by byte with what others have set, so they stay as they are.
func (t *Task) portions(decisions []schemas.Decision) (all []portion, bytes int) {
	all, bytes = append(all, portion{content: t.context, decision: -1}), len(t.context)
	for i, d := range decisions {
		_, state := d.Attributes.(*schemas.SetState)
		for field, content := range schemas.PayloadFields(d.Attributes) {
			if bytes += len(content); !state {
				all = append(all, portion{content: content, decision: i, field: field})
			}
		}
	}
	return all, bytes
}

// put puts a portion into its place, in a copy of the decision's attributes.
func (t *Task) put(decisions []schemas.Decision, p *portion) {
	if p.decision < 0 {
		t.context = p.content
		return
	}
	given := reflect.ValueOf(decisions[p.decision].Attributes)
	changed := reflect.New(given.Elem().Type())
	changed.Elem().Set(given.Elem())
	changed.Elem().Field(p.field).Set(reflect.ValueOf(p.content))
	if attributes, ok := changed.Interface().(schemas.DecisionAttributes); ok {
		decisions[p.decision] = schemas.Decide(attributes)
	}
}

// replySize is how many bytes a reply takes; 0 if it cannot be encoded, which sending it will tell.
func (t *Task) replySize(decisions []schemas.Decision) int {
	marshal := schemas.Marshal
	if t.inJSON {
		marshal = schemas.MarshalJSON
	}
	size := 0
	func() {
		var err error
		defer caught(&err)
		var body []byte
		if body, err = marshal(&schemas.DecisionReply{Decisions: decisions, Context: t.context}); err == nil {
			size = len(body)
		}
	}()
	return size
}
