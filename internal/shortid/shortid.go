// Package shortid keeps run ids in few bytes, for those who keep a million of them in memory: a
// ULID has 26 letters and 128 bits.
//
// What is no ULID stays as it is. Nothing that was written so may leave the process: the form may
// change.
package shortid

import "github.com/oklog/ulid/v2"

// mark begins an id that was made shorter; no id begins with it, as it is no text.
const mark = 0

// Append appends an id to b: 17 bytes for a ULID as Drover makes them.
func Append(b []byte, id string) []byte {
	u, err := ulid.ParseStrict(id)
	if err != nil || u.String() != id { // small letters
		return append(b, id...)
	}
	return append(append(b, mark), u[:]...)
}

// Text gives an id back of which b is all that Append has appended.
func Text(b []byte) string {
	var u ulid.ULID
	if len(b) != 1+len(u) || b[0] != mark {
		return string(b)
	}
	copy(u[:], b[1:])
	return u.String()
}
