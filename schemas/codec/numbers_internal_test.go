package codec

import (
	"math"
	"testing"
	"unsafe"
)

// A number that its field cannot hold is no number: in a compact record nobody else looks at it, so it would wrap around.
func TestNumbersBeyondTheirFields(t *testing.T) {
	for _, tc := range []struct {
		name string
		body string
		read func(*reader) int64
		want int64 // -1 if it is to be refused
	}{
		{"the largest", "\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", (*reader).int, math.MaxInt64},
		{"beyond 63 bits", "\xcf\x80\x00\x00\x00\x00\x00\x00\x00", (*reader).int, -1},
		{"the largest of 32 bits", "\xce\xff\xff\xff\xff", readUint32, math.MaxUint32},
		{"beyond 32 bits", "\xcf\x00\x00\x00\x01\x00\x00\x00\x00", readUint32, -1},
		{"no number", "\xa1x", (*reader).int, -1},
		{"nothing", "", (*reader).int, -1},
		{"cut off", "\xcf\x00", (*reader).int, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &reader{b: []byte(tc.body)}
			switch got := tc.read(r); {
			case tc.want < 0 && !r.bad:
				t.Errorf("got %d, want a refusal", got)
			case tc.want >= 0 && (r.bad || got != tc.want):
				t.Errorf("got %d, refused %t, want %d", got, r.bad, tc.want)
			}
		})
	}
}

func readUint32(r *reader) int64 {
	var n uint32
	r.field(&field{kind: kindUint32}, unsafe.Pointer(&n))
	return int64(n)
}
