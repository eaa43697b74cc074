package machine

import (
	"errors"
	"slices"

	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
)

// ErrCanceled is what calls in a canceled scope return.
var ErrCanceled = errors.New("canceled")

// Scope is a part of the code that can be canceled as one: the run, or what WithCancel begins.
type Scope struct {
	parent   *Scope
	err      error // nil while it is not canceled
	cause    error
	children []*Scope
	open     []*Future // in the order in which they were asked for
	waiters  coroutine.Waiters
}

// NewScope begins a scope inside another; nil stands for one that nothing cancels from outside.
func NewScope(parent *Scope) *Scope {
	s := &Scope{parent: parent}
	if parent != nil {
		if parent.err != nil {
			s.err, s.cause = parent.err, parent.cause
			return s
		}
		parent.children = append(parent.children, s)
	}
	return s
}

// Err is why it is canceled; nil if it is not. Cause says more.
func (s *Scope) Err() error   { return s.err }
func (s *Scope) Cause() error { return s.cause }

// Ready implements [Waitable]: whoever waits for a scope waits for its cancellation.
func (s *Scope) Ready() bool                 { return s.err != nil }
func (s *Scope) waiting() *coroutine.Waiters { return &s.waiters }

// Cancel cancels what the scope has open and all scopes in it, the oldest first.
func (s *Scope) Cancel(err, cause error) {
	if s.err != nil {
		return
	}
	if cause == nil {
		cause = err
	}
	s.err, s.cause = err, cause
	for _, f := range slices.Clone(s.open) {
		f.Cancel()
	}
	for _, c := range s.children {
		c.Cancel(err, cause)
	}
	s.children = nil
	if s.parent != nil {
		s.parent.forget(s)
	}
	s.waiters.Wake()
}

func (s *Scope) forget(c *Scope) {
	if n := slices.Index(s.children, c); n >= 0 {
		s.children = slices.Delete(slices.Clone(s.children), n, n+1) // Cancel goes through the other
	}
}

func (s *Scope) enter(f *Future) {
	f.scope = s
	s.open = append(s.open, f)
}

func (s *Scope) leave(f *Future) {
	if n := slices.Index(s.open, f); n >= 0 {
		s.open = slices.Delete(s.open, n, n+1)
	}
}
