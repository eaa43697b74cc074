package coroutine

import "testing"

func TestUsersFunctions(t *testing.T) {
	where := places()
	for _, tc := range []struct {
		function, file string
		want           bool
	}{
		{"github.com/acme/orders.Process", "/src/orders/order.go", true},
		{"github.com/acme/orders.(*T[...]).Process.func1", "/src/orders/order.go", true},
		{"main.process", "/src/main.go", true},
		{workflow + ".Call[...]", "/src/call.go", false},
		{workflow + "/internal/coroutine.begin", "/src/coroutine.go", false},
		{workflow + "/internal/coroutine_test.TestA", "/src/a_test.go", true},
		{workflow + "_test.TestA", "/src/a_test.go", true},
		{contract + ".(*SignalOf[...]).Decode", "/src/signal.go", false},
		{"runtime.gopanic", where.goroot + "runtime/panic.go", false},
		{"sync.(*Mutex).Lock", where.goroot + "sync/mutex.go", false},
		{"internal/sync.(*Mutex).Lock", where.goroot + "internal/sync/mutex.go", false},
		{"", "", false},
	} {
		if got := users(tc.function, tc.file); got != tc.want {
			t.Errorf("%s in %s: got %t, want %t", tc.function, tc.file, got, tc.want)
		}
	}
}

func TestStates(t *testing.T) {
	for header, want := range map[string]struct {
		state string
		waits bool
	}{
		"goroutine 7 [running]:": {"running", false},
		"goroutine 7 [chan receive (durable), 2 minutes, synctest bubble 1]:": {"chan receive", true},
		"goroutine 7 [select (no cases)]:":                                    {"select", true},
		"goroutine 7 [semacquire, locked to thread]:":                         {"semacquire", true},
		"goroutine 7 [sync.RWMutex.RLock]:":                                   {"sync.RWMutex.RLock", true},
		"goroutine 7 [syscall, 3 minutes]:":                                   {"syscall", false},
		"goroutine 7 [runnable]:":                                             {"runnable", false},
		"goroutine 7 [GC assist wait]:":                                       {"GC assist wait", false},
	} {
		g := goroutine{state: stateOf(header)}
		if g.state != want.state || g.waits() != want.waits {
			t.Errorf("%s: got %q, %t", header, g.state, g.waits())
		}
	}
}
