package runs

import (
	"bytes"
	"testing"

	"github.com/droverhq/drover/schemas"
)

// What is decoded of a short body points into it, and what is decoded of a long one does not keep it.
func TestDecodeKeepsShortBodiesOnly(t *testing.T) {
	for size, kept := range map[int]bool{100: true, MostOwned: false} {
		body, err := schemas.Marshal(&schemas.DecisionReply{Token: "token", Context: bytes.Repeat([]byte("a"), size), Decisions: []schemas.Decision{}})
		if err != nil {
			t.Fatal(err)
		}
		var r schemas.DecisionReply
		if err := Decode(body, &r); err != nil {
			t.Fatal(err)
		}
		copy(body[len(body)-len(r.Context):], bytes.Repeat([]byte("b"), size))
		if got := bytes.ContainsRune(r.Context, 'b'); got != kept {
			t.Errorf("with a context of %d bytes: it points into the body: %v, want %v", size, got, kept)
		}
	}
}
