package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Outcome is what a client knows of an operation.
type Outcome string

// The outcomes.
const (
	// OK was answered: it happened, between call and return.
	OK Outcome = "ok"
	// Failed was refused for certain: it did not happen and will not.
	Failed Outcome = "failed"
	// Unknown was not answered.
	Unknown Outcome = "unknown"
)

// Kind is what an operation does, and to what its key belongs.
type Kind string

// The operations. Key, Arg, Result and Values are described at each.
const (
	// Start starts the workflow id Key with the run id Arg. OK: it is the open run, or Result is
	// another run that is open and to which the start has led (use existing). Failed: Result is the
	// run that is open.
	Start Kind = "start"
	// End terminates run Arg of the workflow id Key. OK: it has closed by this. Failed: it was
	// closed before, or there is none.
	End Kind = "end"
	// Open reads which run of Key is open: Result, empty if none is.
	Open Kind = "open"

	// Append signals run Key with the value Arg.
	Append Kind = "append"
	// Final reads all values of run Key when nothing is under way any more: Values, in the order of
	// the history.
	Final Kind = "final"
	// Peek reads the values of run Key that there are: Values.
	Peek Kind = "peek"

	// Set and Reset are compare-and-set on the flag of run Key, from reset to set and back; Arg is
	// written beside it. OK: the flag is as asked, and if it was not before, Arg is in the log.
	// Failed: it was so before. N counts the tries.
	Set   Kind = "set"
	Reset Kind = "reset"
	// Log reads what was written beside the flag of run Key: Values, in order.
	Log Kind = "log"

	// Take gives the client the claim Key with the number N. Use says that it held it, by its own
	// clock. Release gives it back.
	Take    Kind = "take"
	Use     Kind = "use"
	Release Kind = "release"

	// Begin starts the workflow id Key, which nobody else starts. Result is the run.
	Begin Kind = "begin"
	// Await waits for the end of the workflow Key. Result is how it ended.
	Await Kind = "await"
	// Cancel asks the workflow Key to end.
	Cancel Kind = "cancel"
	// Probe asks the owner of partition Key something.
	Probe Kind = "probe"
)

// Op is one operation of one client. Times are nanoseconds of the wall clock of this machine.
type Op struct {
	Client  int      `json:"client"`
	Kind    Kind     `json:"op"`
	Key     string   `json:"key"`
	Arg     string   `json:"arg,omitempty"`
	N       uint64   `json:"n,omitempty"`
	Call    int64    `json:"call"`
	Return  int64    `json:"return"`
	Outcome Outcome  `json:"outcome"`
	Result  string   `json:"result,omitempty"`
	Values  []string `json:"values,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// String is the operation as one line.
func (o Op) String() string {
	s := fmt.Sprintf("client %d %s %s", o.Client, o.Kind, o.Key)
	if o.Arg != "" {
		s += " " + o.Arg
	}
	if o.N != 0 {
		s += fmt.Sprintf(" #%d", o.N)
	}
	s += ": " + string(o.Outcome)
	if o.Result != "" {
		s += " " + o.Result
	}
	if o.Values != nil {
		s += fmt.Sprintf(" %v", o.Values)
	}
	return s
}

// Recorder keeps operations and writes each as a line of JSON. All methods may be called by several
// goroutines.
type Recorder struct {
	mu   sync.Mutex
	enc  *json.Encoder
	err  error
	ops  []Op
	done map[Outcome]int
	more chan struct{} // closed and made anew with each operation
}

// NewRecorder writes to w.
func NewRecorder(w io.Writer) *Recorder {
	return &Recorder{enc: json.NewEncoder(w), done: map[Outcome]int{}, more: make(chan struct{})}
}

// Do records what fn did: it is handed the operation with its call time and fills in the outcome.
func (r *Recorder) Do(o Op, fn func(*Op)) Op {
	o.Call = time.Now().UnixNano()
	fn(&o)
	o.Return = time.Now().UnixNano()
	r.Add(o)
	return o
}

// Add records an operation that is complete. One of kind Probe is kept, but not counted.
func (r *Recorder) Add(o Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, o)
	if o.Kind != Probe {
		r.done[o.Outcome]++
		close(r.more)
		r.more = make(chan struct{})
	}
	if err := r.enc.Encode(o); err != nil && r.err == nil {
		r.err = err
	}
}

// Ops returns what was recorded from the nth operation on, and the first error of the writer.
func (r *Recorder) Ops(n int) ([]Op, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ops[n:]), r.err
}

// Counts says how many operations had which outcome.
func (r *Recorder) Counts() (ok, failed, unknown int, more <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done[OK], r.done[Failed], r.done[Unknown], r.more
}

// ReadOps reads lines of JSON that a Recorder wrote.
func ReadOps(r io.Reader) ([]Op, error) {
	var all []Op
	for dec := json.NewDecoder(r); ; {
		var o Op
		switch err := dec.Decode(&o); err {
		case nil:
			all = append(all, o)
		case io.EOF:
			return all, nil
		default:
			return all, fmt.Errorf("operation %d: %w", len(all)+1, err)
		}
	}
}
