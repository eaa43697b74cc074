package machine

import (
	"runtime"

	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
)

// Enter begins a call of the API that may wait or ask for something. It does not return if no
// coroutine of the run makes the call, or once the run is evicted. The error says that the
// coroutine panics: then its deferred functions can ask for nothing.
func (m *Machine) Enter(op string) (*coroutine.Coroutine, error) { return m.scheduler.Enter(op) }

// MustEnter is Enter for calls that have no error to return: they do not return.
func (m *Machine) MustEnter(op string) *coroutine.Coroutine {
	c, err := m.scheduler.Enter(op)
	if err != nil {
		runtime.Goexit()
	}
	return c
}

// WaitAny waits until one of them may be ready; why says for what, in errors. The caller looks again:
// another coroutine may have been quicker.
func (m *Machine) WaitAny(why string, all ...Waitable) error {
	c, err := m.Enter("workflow: " + why)
	if err != nil {
		return err
	}
	for _, x := range all {
		if x.Ready() {
			return nil
		}
	}
	for _, x := range all {
		x.waiting().Add(c)
	}
	c.Park()
	for _, x := range all {
		x.waiting().Remove(c)
	}
	return nil
}

// Wait waits until it is ready.
func (m *Machine) Wait(why string, x Waitable) error {
	for !x.Ready() {
		if err := m.WaitAny(why, x); err != nil {
			return err
		}
	}
	return nil
}
