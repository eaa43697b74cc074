package coroutine

import (
	"fmt"
	"path"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// Frame is a call in a stack.
type Frame struct {
	Function string // with the path of its package
	File     string
	Line     int
}

// Stack is the part of a stack that the user has written, from the innermost call outwards: calls
// of the runtime, of the standard library and of the workflow API are left out.
type Stack []Frame

// Line is the innermost position, such as order.go:31; empty if there is none.
func (s Stack) Line() string {
	if len(s) == 0 {
		return ""
	}
	return s[0].position()
}

// String has a line for each call: orders.Process (order.go:31).
func (s Stack) String() string {
	var b strings.Builder
	for _, f := range s {
		fmt.Fprintf(&b, "%s (%s)\n", path.Base(f.Function), f.position())
	}
	return b.String()
}

func (f Frame) position() string { return fmt.Sprintf("%s:%d", path.Base(f.File), f.Line) }

// Here is the position in the user's code that has called, such as order.go:31.
func Here() string { return callers().Line() }

// callers is the stack of the caller.
func callers() (s Stack) {
	pcs := make([]uintptr, 128)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if users(f.Function, f.File) {
			s = append(s, Frame{f.Function, f.File, f.Line})
		}
		if !more {
			return s
		}
	}
}

const (
	workflow = "github.com/droverhq/drover/decider/workflow"
	contract = "github.com/droverhq/drover/contract"
)

// users tells whether a user has written a function.
func users(function, file string) bool {
	pkg := packageOf(function)
	switch {
	case pkg == "" || pkg == workflow || pkg == contract:
		return false
	case strings.HasPrefix(pkg, workflow+"/internal/") && !strings.HasSuffix(pkg, "_test"):
		return false
	case pkg == "main" || strings.Contains(strings.SplitN(pkg, "/", 2)[0], "."):
		return true
	}
	where := places()
	if where.goroot != "" {
		return !strings.HasPrefix(file, where.goroot)
	}
	return where.module != "" && (pkg == where.module || strings.HasPrefix(pkg, where.module+"/"))
}

// packageOf is the path of a function's package.
func packageOf(function string) string {
	dir, base := path.Split(function)
	name, _, _ := strings.Cut(base, ".")
	return dir + name
}

// places tell the standard library from modules without a dot in their path: the folder of the
// former, unless the program was built with -trimpath, and the main module.
var places = sync.OnceValue(func() (p struct{ goroot, module string }) {
	_, file, _, _ := runtime.Caller(0)
	if path.IsAbs(file) {
		f := runtime.FuncForPC(reflect.ValueOf(runtime.Goexit).Pointer())
		file, _ := f.FileLine(f.Entry())
		p.goroot = strings.TrimSuffix(file, "runtime/"+path.Base(file))
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		p.module = info.Main.Path
	}
	return p
})
