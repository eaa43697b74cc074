package shortid_test

import (
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"github.com/droverhq/drover/internal/shortid"
)

// Every id comes back as it was, and a ULID is kept in 17 bytes.
func TestIDsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var u ulid.ULID
		copy(u[:], rapid.SliceOfN(rapid.Byte(), len(u), len(u)).Draw(t, "ulid"))
		for id, size := range map[string]int{
			u.String():                  17,
			strings.ToLower(u.String()): 26,
			"8" + u.String()[1:]:        26, // more than 128 bits
			u.String()[1:]:              25,
			rapid.StringMatching(`[!-~]{0,40}`).Draw(t, "id"): -1,
		} {
			b := shortid.Append([]byte("before"), id)
			if got := shortid.Text(b[len("before"):]); got != id || string(b[:6]) != "before" {
				t.Fatalf("%q: got %q after %q", id, got, b[:6])
			}
			if got := len(b) - 6; size > 0 && got != size && strings.ToLower(id) != id {
				t.Fatalf("%q: got %d bytes, want %d", id, got, size)
			}
		}
	})
}
