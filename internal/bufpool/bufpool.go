// Package bufpool lends memory to encode in. How large a body will be is known only at its end, and
// some bodies are kept for long: so they are encoded in a buffer, and copied out of it in just
// their size. What is not kept for longer than the buffer is used where it stands.
//
// It is a package of its own because schemas is pure and knows no sync; whose memory a body was
// encoded in can be seen by nobody.
package bufpool

import (
	"slices"
	"sync"
)

const (
	first = 2 << 10
	// most bounds what is kept from one body to the next, in bytes.
	most = 64 << 10
)

// Buffer is memory for one body at a time. It belongs to who took it until Put.
type Buffer struct{ b []byte }

var pool = sync.Pool{New: func() any { return &Buffer{b: make([]byte, 0, first)} }}

// Get returns a buffer that nobody else uses.
func Get() *Buffer {
	r, _ := pool.Get().(*Buffer)
	return r
}

// Bytes is empty, with space to append to.
func (r *Buffer) Bytes() []byte { return r.b[:0] }

// Keep returns a copy of a body that was appended to Bytes; a very large one is returned itself.
func (r *Buffer) Keep(body []byte) []byte {
	if cap(body) > most {
		return body
	}
	return slices.Clone(r.Use(body))
}

// Use returns a body that was appended to Bytes, which may be read until Put. Its memory is the
// buffer's from now on, unless it is very large.
func (r *Buffer) Use(body []byte) []byte {
	if cap(body) <= most {
		r.b = body[:0]
	}
	return body
}

// Put gives the buffer to others.
func (r *Buffer) Put() { pool.Put(r) }
