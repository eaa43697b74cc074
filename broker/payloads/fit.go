package payloads

import (
	"slices"

	"github.com/droverhq/drover/schemas"
)

const (
	// headerBudget stays free below the server's limit: a message may need it besides its body, and
	// a record around its payloads.
	headerBudget = 64 << 10
	// besideRoom is for what stands in a message beside a payload: ids, tags, a reason.
	besideRoom = 4 << 10
	// leastMoved is the size in bytes of the smallest payload that is worth a reference, which
	// takes some 200.
	leastMoved = 512
)

// RecordLimit is the size in bytes of the largest record of a history where the server's
// max_payload is as given.
func RecordLimit(maxPayload int64) int { return max(int(maxPayload)-headerBudget, headerBudget) }

// MessageLimit is the size in bytes of the largest message that is taken into a history: it may be
// sent on in base64, which takes a third more.
func MessageLimit(maxPayload int64) int { return RecordLimit(maxPayload) / 4 * 3 }

// InlineLimit is the size in bytes of the largest payload that stands in a message itself, with
// little else: schemas.PayloadThreshold, or less if the server takes less.
func InlineLimit(maxPayload int64) int {
	return min(schemas.PayloadThreshold, MessageLimit(maxPayload)-besideRoom)
}

// Excess returns those of the payloads of a message of size bytes that have to go to the object
// store: each that has more than each bytes, and then the largest, until the message has most bytes
// at most. What is small or a reference stays. There may be nil among the payloads.
func Excess(fields []*schemas.Payload, size, each, most int) (moved []*schemas.Payload) {
	var candidates []*schemas.Payload
	for _, f := range fields {
		if f == nil || len(*f) < leastMoved {
			continue
		}
		if _, ok := f.Ref(); !ok {
			candidates = append(candidates, f)
		}
	}
	slices.SortStableFunc(candidates, func(a, b *schemas.Payload) int { return len(*b) - len(*a) })
	for _, f := range candidates {
		if len(*f) <= each && size <= most {
			break
		}
		moved = append(moved, f)
		size -= len(*f) - leastMoved/2
	}
	return moved
}
