// Package clock estimates a server's clock from the timestamps of its messages, for those who act on due times: timer
// workers, and whoever judges whether a claim has expired (PROTOCOL.md, P-15).
//
// Invariants:
//   - The estimate is never ahead of the server. A message is stamped before it is received, so server - local is too
//     small by the time it travelled, and the largest such difference is the best bound from below. What is done when
//     the estimate says so is done late by that time, never early.
//   - A step of the local wall clock changes nothing: local time is counted on the monotonic reading of the first
//     local time that was seen. That reading stands still while the machine is suspended; until the next observation
//     the estimate is then behind, which is the safe side.
//   - What is older than two windows of [Window] is forgotten as soon as something newer is known. So a server clock
//     that is slower than the local one, or was set back, is followed within two windows of steady observations.
//
// An old message is a true bound but a poor one. Who has only old messages, because it has just begun to follow a quiet
// stream or was idle for longer than both windows before it read one, is behind by their age. Such a follower
// observes an answer of the server as well, for example the time in a stream's info.
//
// The package is pure: no I/O, no goroutine, and it never asks for the time itself.
package clock

import (
	"sync/atomic"
	"time"
)

// Window is the length of each of the two windows over which the largest difference counts.
const Window = 2 * time.Minute

// Server estimates the clock of one server, or of the leaders of one stream. The zero value is ready. All methods may
// be called by several goroutines; none of them blocks, and only an observation that improves the estimate allocates.
type Server struct {
	state atomic.Pointer[state]
}

// state is immutable; a new one replaces it.
type state struct {
	base   time.Time // the first local time seen; others are counted from it
	window int64     // number of the window that current belongs to
	// current and previous are the largest server - local of their windows. With one window known they are equal.
	current, previous time.Duration
}

// Observe takes note of a timestamp of the server that was received at local: time.Now() at the receiver, taken after
// the message had arrived. A timestamp that was old when it arrived does no harm; a zero one is ignored.
func (s *Server) Observe(server, local time.Time) {
	if server.IsZero() {
		return
	}
	server = server.Round(0) // it must be compared by the wall, whoever made it
	for {
		old := s.state.Load()
		if old == nil {
			offset := server.Sub(local)
			if s.state.CompareAndSwap(nil, &state{base: local, current: offset, previous: offset}) {
				return
			}
			continue
		}
		next := old.with(server, local)
		if next == nil || s.state.CompareAndSwap(old, next) {
			return
		}
	}
}

// with returns the state after an observation, or nil when nothing changes.
func (s *state) with(server, local time.Time) *state {
	elapsed := local.Sub(s.base)
	offset := server.Sub(s.base) - elapsed
	// What comes late, from a window that is over, counts in the current one: it is a true bound there too.
	switch window := int64(elapsed / Window); {
	case window > s.window+1:
		return &state{base: s.base, window: window, current: offset, previous: offset}
	case window > s.window:
		return &state{base: s.base, window: window, current: offset, previous: s.current}
	case offset > s.current:
		return &state{base: s.base, window: s.window, current: offset, previous: s.previous}
	default:
		return nil
	}
}

// Now gives the estimate of the server's clock at the local time: at or before the true one. Before the first
// observation it is the zero time, at which nothing is due.
func (s *Server) Now(local time.Time) time.Time {
	st := s.state.Load()
	if st == nil {
		return time.Time{}
	}
	return st.base.Round(0).Add(local.Sub(st.base) + max(st.current, st.previous))
}

// Known tells whether anything was observed.
func (s *Server) Known() bool { return s.state.Load() != nil }
