package coroutine

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// magic is in the frame of each coroutine. No address has it.
const magic = 0xd0_5e_c0_1d_c0_de_4a_11

// goroutine is a coroutine in a dump.
type goroutine struct {
	state string // in the words of package runtime
	text  string // the calls
}

// find looks for one coroutine. If it has ended, all is empty.
func find(id uint64) goroutine { return dump()[id] }

// dump reads the coroutines of the process, by their ids.
func dump() map[uint64]goroutine {
	buf := make([]byte, 64<<10+2<<10*runtime.NumGoroutine())
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	all := map[uint64]goroutine{}
	mark := fmt.Sprintf(".begin({%#x, 0x", uint64(magic))
	for text := range strings.SplitSeq(string(buf[:n]), "\n\n") {
		_, tail, ok := strings.Cut(text, mark)
		if !ok {
			continue
		}
		hex, _, _ := strings.Cut(tail, "}")
		id, err := strconv.ParseUint(strings.TrimSuffix(hex, "?"), 16, 64)
		if err != nil {
			continue
		}
		header, calls, _ := strings.Cut(text, "\n")
		all[id] = goroutine{stateOf(header), calls}
	}
	return all
}

// stateOf reads "goroutine 7 [chan receive (durable), 2 minutes, synctest bubble 1]:".
func stateOf(header string) string {
	_, state, _ := strings.Cut(header, "[")
	state, _, _ = strings.Cut(state, "]")
	state, _, _ = strings.Cut(state, ",")
	state, _, _ = strings.Cut(state, " (")
	return state
}

// waits are the states in which a goroutine does nothing until somebody else does something. In a
// system call it may be at work.
var waits = []string{
	"chan receive", "chan send", "select", "sleep", "semacquire", "sync.", "IO wait",
}

func (g goroutine) waits() bool {
	return slices.ContainsFunc(waits, func(w string) bool { return strings.HasPrefix(g.state, w) })
}

// stack reads the calls: a line with the function and its arguments, then one with the file.
func (g goroutine) stack() (s Stack) {
	function := ""
	for line := range strings.Lines(g.text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "created by ") {
			break
		}
		position, ok := strings.CutPrefix(line, "\t")
		if !ok {
			function = line[:max(0, strings.LastIndexByte(line, '('))]
			continue
		}
		position, _, _ = strings.Cut(position, " +0x")
		i := strings.LastIndexByte(position, ':')
		if n, err := strconv.Atoi(position[i+1:]); err == nil && users(function, position[:i]) {
			s = append(s, Frame{function, position[:i], n})
		}
	}
	return s
}
