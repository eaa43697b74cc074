package bucketkey_test

import (
	"testing"

	"github.com/droverhq/drover/internal/bucketkey"
)

func TestUnescape(t *testing.T) {
	for _, name := range []string{"", "vm-1", "a.b", "a=b", "é", "a b", "\x00"} {
		if got, ok := bucketkey.Unescape(bucketkey.Escape(name)); got != name || !ok {
			t.Errorf("%q: got %q, %v", name, got, ok)
		}
	}
	for _, key := range []string{"a.b", "=", "=2", "=2e", "=zz", "é", "=41"} {
		if got, ok := bucketkey.Unescape(key); ok {
			t.Errorf("%q: got %q, want that it is no key of a name", key, got)
		}
	}
}

func FuzzUnescape(f *testing.F) {
	f.Add("a=2Eb")
	f.Fuzz(func(t *testing.T, key string) {
		if name, ok := bucketkey.Unescape(key); ok && bucketkey.Escape(name) != key {
			t.Errorf("%q: got %q, which has another key", key, name)
		}
	})
}
