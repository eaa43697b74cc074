package coroutine

import (
	"errors"
	"reflect"
	"runtime"
	"sync"
)

// ErrEnding is returned by [Dispatcher.Enter] while the coroutine panics or ends by Goexit.
var ErrEnding = errors.New("workflow: the coroutine panics or was ended by runtime.Goexit: " +
	"its deferred functions cannot use the workflow any more")

// Enter begins each API call that decides or waits, and returns the coroutine that makes it. op is
// the name of the call in errors, such as workflow.Call.
//
// It does not return, but ends the goroutine, if that is none of the dispatcher's coroutines, if
// the code may only look, or if the coroutines are evicted. It returns [ErrEnding] while the
// coroutine panics. The API call returns that error, so that the panic keeps its value; one that
// has no error to return ends the goroutine by [runtime.Goexit].
func (d *Dispatcher) Enter(op string) (*Coroutine, error) {
	if d.over.Load() {
		runtime.Goexit()
	}
	own, ending := inspect()
	c := d.current.Load()
	switch {
	case c == nil || !own:
		err := &Error{Kind: Foreign, What: op, Stack: callers()}
		if !d.over.Load() { // else it is a coroutine that was halted in between
			d.foreign.CompareAndSwap(nil, err)
		}
		runtime.Goexit()
	case c.watching != "":
		c.fail(&Error{Kind: Watching, What: op, Value: c.watching, Stack: callers()})
		runtime.Goexit()
	case ending:
		return nil, ErrEnding
	}
	return c, nil
}

// entries are where the functions begin that a stack is looked through for.
var entries = sync.OnceValue(func() (e struct{ begin, goexit, panic uintptr }) {
	e.begin = reflect.ValueOf(begin).Pointer()
	e.goexit = reflect.ValueOf(runtime.Goexit).Pointer()
	defer func() {
		_ = recover()
		pcs := make([]uintptr, 16)
		for _, pc := range pcs[:runtime.Callers(0, pcs)] {
			if f := runtime.FuncForPC(pc - 1); f != nil && f.Name() == "runtime.gopanic" {
				e.panic = f.Entry()
			}
		}
	}()
	panic("to see how a panic looks on a stack")
})

// inspect looks through the stack of the caller: whether its goroutine is a coroutine, and whether
// it runs deferred functions of a panic or of Goexit.
func inspect() (own, ending bool) {
	want := entries()
	var few [48]uintptr
	pcs := few[:]
	n := runtime.Callers(2, pcs)
	for n == len(pcs) {
		pcs = make([]uintptr, 4*len(pcs))
		n = runtime.Callers(2, pcs)
	}
	for _, pc := range pcs[:n] {
		f := runtime.FuncForPC(pc - 1)
		if f == nil {
			continue
		}
		switch f.Entry() {
		case want.begin:
			own = true
		case want.goexit, want.panic:
			ending = true
		}
	}
	return own, ending
}
