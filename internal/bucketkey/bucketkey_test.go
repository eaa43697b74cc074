package bucketkey_test

import (
	"testing"

	"github.com/droverhq/drover/internal/bucketkey"
)

// Two names never make one key: "a.b" and "a_b" are two nodes.
func TestEscape(t *testing.T) {
	for name, want := range map[string]string{"": "", "vm-1": "vm-1", "a_b": "a_b", "a.b": "a=2Eb", "a=b": "a=3Db", "é": "=C3=A9"} {
		if got := bucketkey.Escape(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
