// Package room lends memory to encode in. How large a body will be is known only at its end, and some bodies are kept for long:
// so they are encoded in a room, and copied out of it in just their size. What is not kept for longer than the room is used where it stands.
//
// It is a package of its own because schemas is pure and knows no sync; whose memory a body was encoded in can be seen by nobody.
package room

import (
	"slices"
	"sync"
)

const (
	first = 2 << 10
	// most bounds what is kept from one body to the next, in bytes.
	most = 64 << 10
)

// Room is memory for one body at a time. It belongs to who took it until Leave.
type Room struct{ b []byte }

var rooms = sync.Pool{New: func() any { return &Room{b: make([]byte, 0, first)} }}

// Take returns a room that nobody else uses.
func Take() *Room {
	r, _ := rooms.Get().(*Room)
	return r
}

// Bytes is empty, with space to append to.
func (r *Room) Bytes() []byte { return r.b[:0] }

// Keep returns a copy of a body that was appended to Bytes; a very large one is returned itself.
func (r *Room) Keep(body []byte) []byte {
	if cap(body) > most {
		return body
	}
	return slices.Clone(r.Use(body))
}

// Use returns a body that was appended to Bytes, which may be read until Leave. Its memory is the room's from now on, unless it is very large.
func (r *Room) Use(body []byte) []byte {
	if cap(body) <= most {
		r.b = body[:0]
	}
	return body
}

// Leave gives the room to others.
func (r *Room) Leave() { rooms.Put(r) }
