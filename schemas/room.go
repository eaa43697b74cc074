package schemas

import (
	"slices"
	"sync"
)

// mostRoom bounds what is kept from one body to the next, in bytes.
const mostRoom = 64 << 10

// room is memory to encode in: how large a body will be is known at its end only, and a body is kept for long by some.
type room struct{ b []byte }

var rooms = sync.Pool{New: func() any { return &room{b: make([]byte, 0, 2048)} }}

func takeRoom() *room {
	r, _ := rooms.Get().(*room)
	return r
}

// keep returns a copy of a body that was encoded in the room, of just its size.
func (r *room) keep(body []byte) []byte {
	if r.b = body[:0]; cap(body) > mostRoom {
		r.b = nil
		return body
	}
	return slices.Clone(body)
}

func (r *room) leave() { rooms.Put(r) }
