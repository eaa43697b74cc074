package payloads

import (
	"slices"

	"github.com/droverhq/drover/schemas"
)

const (
	// envelopeRoom stays free below the server's limit: a message may need it besides its body, and
	// a record around its payloads.
	envelopeRoom = 64 << 10
	// leastMoved is the size in bytes of the smallest payload that is worth a reference, which
	// takes some 200.
	leastMoved = 512
)

// MessageLimit is the size in bytes of the largest body that is taken into a history where the
// server's max_payload is as given: what stands in it may be sent on in base64, which takes a third
// more.
func MessageLimit(maxPayload int64) int {
	return max(int(maxPayload)-envelopeRoom, envelopeRoom) / 4 * 3
}

// InlineLimit is the size in bytes of the largest payload that stands in a message itself:
// schemas.PayloadThreshold, or half of MessageLimit if that is less.
func InlineLimit(maxPayload int64) int {
	return min(schemas.PayloadThreshold, MessageLimit(maxPayload)/2)
}

// Excess returns those of the payloads of a message of size bytes that have to go to the object
// store: each that has more than InlineLimit, and then the largest, until the message has
// MessageLimit at most. What is small or a reference stays. There may be nil among the payloads.
func Excess(fields []*schemas.Payload, size int, maxPayload int64) (moved []*schemas.Payload) {
	each, most := InlineLimit(maxPayload), MessageLimit(maxPayload)
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
		size -= len(*f) - leastMoved
	}
	return moved
}
