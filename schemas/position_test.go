package schemas_test

import (
	"testing"

	"github.com/droverhq/drover/schemas"
)

// A stream that lost its tail twice hands out its numbers three times. A message that is read again is known to be of the last
// incarnation or an earlier one, no more; the server's time tells whether a run has consumed it (P-9).
func TestPositionsOfSeveralIncarnations(t *testing.T) {
	for _, tt := range []struct {
		name string
		p, q schemas.Position
		want bool
	}{
		{"by number in one incarnation", schemas.Position{Incarnation: 2, Sequence: 8, Time: 90}, schemas.Position{Incarnation: 2, Sequence: 9, Time: 80}, true},
		{"consumed in the first, read again in the third", schemas.Position{Incarnation: 1, Sequence: 8, Time: 80}, schemas.Position{Incarnation: 0, Sequence: 10, Time: 100}, true},
		{"a new message with a used number", schemas.Position{Incarnation: 0, Sequence: 10, Time: 100}, schemas.Position{Incarnation: 1, Sequence: 10, Time: 120}, true},
		{"the place before a message, in another incarnation", schemas.Position{Incarnation: 0, Sequence: 7, Time: 80}, schemas.Position{Incarnation: 1, Sequence: 8, Time: 80}, true},
		{"the message itself", schemas.Position{Incarnation: 1, Sequence: 8, Time: 80}, schemas.Position{Incarnation: 0, Sequence: 8, Time: 80}, false},
		{"by incarnation where a time is unknown", schemas.Position{}, schemas.Position{Incarnation: 1, Sequence: 8, Time: 80}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.p.Before(tt.q); got != tt.want {
				t.Errorf("%+v before %+v: got %v, want %v", tt.p, tt.q, got, tt.want)
			}
			if tt.p != tt.q && tt.want && tt.q.Before(tt.p) {
				t.Errorf("%+v and %+v are before each other", tt.p, tt.q)
			}
		})
	}
}
