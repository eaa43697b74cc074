// Package clock estimates a server's clock from the timestamps of its messages, for those who act
// on due times: timer workers, and whoever judges whether a claim has expired (P-15).
//
// Invariants:
//   - The estimate [Server.Now] is never ahead of the server. A message is stamped before it is
//     received, so server - local is too small by the time it travelled, and the largest such
//     difference is the best bound from below. What is done when the estimate says so is done late
//     by that time, never early.
//   - The estimate [Server.Latest] is never after it, within two windows of an exchange. A question
//     is sent before the server stamps its answer, so server - local at the question is too large,
//     and the smallest such difference is the best bound from above.
//   - A step of the local wall clock changes nothing: local time is counted on the monotonic
//     reading of the first local time that was seen. That reading stands still while the machine is
//     suspended; until the next observation the estimate is then after, which is the safe side.
//   - What is older than two windows of [Window] is forgotten as soon as something newer is known.
//     So a server clock that is slower than the local one, or was set back, is followed within two
//     windows of steady observations, and at the next exchange: an answer that proves the estimate
//     to be ahead ends all that it rested on.
//
// An old message is a true bound but a poor one. Who has only old messages, because it has just
// begun to follow a quiet stream or was idle for longer than both windows before it read one, is
// after by their age. Such a follower observes an answer of the server as well, for example the
// time in a stream's info.
//
// The estimate is pure: no I/O, no goroutine, and it never asks for the time itself.
package clock

import (
	"math"
	"sync/atomic"
	"time"
)

// Window is the length of each of the two windows over which the largest difference counts.
const Window = 2 * time.Minute

// Server estimates the clock of one server, or of the leaders of one stream. The zero value is
// ready. All methods may be called by several goroutines; none of them blocks, and only an
// observation that improves the estimate allocates.
type Server struct {
	state atomic.Pointer[state]
}

// state is immutable; a new one replaces it.
type state struct {
	base   time.Time // the first local time seen; others are counted from it
	window int64     // number of the window that current belongs to
	// current and previous are the largest server - local of their windows at the receiver. With
	// one window known they are equal.
	current, previous time.Duration
	// ceiling and ceilingBefore are the smallest of their windows at the asker, or unasked.
	ceiling, ceilingBefore time.Duration
}

// unasked is the ceiling of a window without an exchange.
const unasked = time.Duration(math.MaxInt64)

// Observe takes note of a timestamp of the server that was received at local: time.Now() at the
// receiver, taken after the message had arrived. A timestamp that was old when it arrived does no
// harm; a zero one is ignored.
func (s *Server) Observe(server, local time.Time) { s.note(server, time.Time{}, local) }

// ObserveExchange takes note of a timestamp that the server made between two local times: before
// the question was sent, and after its answer.
func (s *Server) ObserveExchange(asked, server, answered time.Time) {
	s.note(server, asked, answered)
}

// note has the zero time as asked if nothing was.
func (s *Server) note(server, asked, local time.Time) {
	if server.IsZero() {
		return
	}
	server = server.Round(0) // it must be compared by the wall, whoever made it
	for {
		old := s.state.Load()
		if old == nil {
			first := &state{
				base: local, current: math.MinInt64, previous: math.MinInt64, ceiling: unasked,
				ceilingBefore: unasked,
			}
			next := first.with(server, asked, local)
			next.previous = next.current
			if s.state.CompareAndSwap(nil, next) {
				return
			}
			continue
		}
		next := old.with(server, asked, local)
		if next == nil || s.state.CompareAndSwap(old, next) {
			return
		}
	}
}

// with returns the state after an observation, or nil when nothing changes.
func (s *state) with(server, asked, local time.Time) *state {
	elapsed := local.Sub(s.base)
	floor, ceiling := server.Sub(s.base)-elapsed, unasked
	if !asked.IsZero() {
		ceiling = server.Sub(s.base) - asked.Sub(s.base)
	}
	// What comes late, from a window that is over, counts in the current one: it is a true bound
	// there too.
	switch window := int64(elapsed / Window); {
	case ceiling < max(s.current, s.previous):
		// the server was set back, or another one with a slower clock answers
		return &state{
			base: s.base, window: max(window, s.window), current: floor, previous: floor,
			ceiling: ceiling, ceilingBefore: unasked,
		}
	case window > s.window+1:
		return &state{
			base: s.base, window: window, current: floor, previous: floor, ceiling: ceiling,
			ceilingBefore: unasked,
		}
	case window > s.window:
		return &state{
			base: s.base, window: window, current: floor, previous: s.current, ceiling: ceiling,
			ceilingBefore: s.ceiling,
		}
	case floor > s.current || ceiling < s.ceiling:
		return &state{
			base: s.base, window: s.window, current: max(s.current, floor), previous: s.previous,
			ceiling: min(s.ceiling, ceiling), ceilingBefore: s.ceilingBefore,
		}
	default:
		return nil
	}
}

// Now gives the estimate of the server's clock at the local time: at or before the true one. Before
// the first observation it is the zero time, at which nothing is due.
func (s *Server) Now(local time.Time) time.Time {
	st := s.state.Load()
	if st == nil {
		return time.Time{}
	}
	return st.base.Round(0).Add(local.Sub(st.base) + max(st.current, st.previous))
}

// Latest gives a time at or after that of the server: what it has stamped by the local time bears
// none that is later. It is [Server.Now] as long as there was no exchange, or none for two windows.
func (s *Server) Latest(local time.Time) time.Time {
	st := s.state.Load()
	if st == nil {
		return time.Time{}
	}
	offset := max(st.current, st.previous)
	if c := min(st.ceiling, st.ceilingBefore); c != unasked {
		offset = max(offset, c) // a server that was set on is ahead of what was asked before
	}
	return st.base.Round(0).Add(local.Sub(st.base) + offset)
}
