package run

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/droverhq/drover/decider/flow/backoff"
)

// Status says where a run stands.
type Status string

// The statuses of a run.
const (
	Staged  Status = "staged"  // it waits for its lock
	Running Status = "running" // it runs, or waits for something
	Closing Status = "closing" // its steps are done, its output is being made
	// it holds a lock, and waits for the end of the work that it has canceled
	Stopping  Status = "stopping"
	Succeeded Status = "succeeded"
	Broke     Status = "failed"
	Canceled  Status = "canceled"
)

// Ended tells whether nothing more happens.
func (s Status) Ended() bool { return s == Succeeded || s == Broke || s == Canceled }

// State is a run. Values in it are never changed in place.
type State struct {
	Format  int    `json:"drover_run"`
	Program string `json:"program,omitempty"`
	Status  Status `json:"status"`
	ID      string `json:"id,omitempty"`
	Task    string `json:"task,omitempty"`
	Mode    string `json:"mode,omitempty"` // what began the run

	Input         Value    `json:"input,omitzero"`
	Vars          Value    `json:"vars,omitzero"`
	StartVars     Value    `json:"start_vars,omitzero"`
	Prev          Value    `json:"prev,omitzero"`   // the output that a step sees
	Result        Value    `json:"result,omitzero"` // of the run
	Failure       *Failure `json:"failure,omitempty"`
	Reducing      []string `json:"reducing,omitempty"`
	IdempotentAll bool     `json:"idempotent_all,omitempty"`

	// the lists that are being run, the innermost last
	Stack   []Frame            `json:"stack,omitempty"`
	Records map[string]*Record `json:"records,omitempty"`
	// the step that was entered last, outside of handlers
	At string `json:"at,omitempty"`
	// the step on top has begun, and its last instance goes on
	Entered bool `json:"entered,omitempty"`
	// of the step on top while its condition is not judged yet
	Trial *Instance `json:"trial,omitempty"`
	Wait  *Wait     `json:"wait,omitempty"`
	// timeouts that are armed, with the ref of the step; run for the run's
	Timers map[string]string `json:"timers,omitempty"`
	// what was read for the run's own lock and output
	Whole  Instance `json:"whole,omitzero"`
	Idle   int      `json:"idle,omitempty"` // steps since the last wait
	Pauses int      `json:"pauses,omitempty"`

	Last      string   `json:"last,omitempty"`   // the replay point that was passed last
	Points    []string `json:"points,omitempty"` // refs of steps that are marked
	FromStart bool     `json:"from_start,omitempty"`

	// the step at which the run resumed by itself last, and how often in a row
	Resumed string `json:"resumed,omitempty"`
	Resumes int    `json:"resumes,omitempty"`

	Retries map[string]backoff.Records `json:"retries,omitempty"`
	// that came before they were waited for
	Signals map[string][]Value `json:"signals,omitempty"`
	Locked  string             `json:"locked,omitempty"` // the lock that is held
	Unkept  bool               `json:"unkept,omitempty"` // the retention is disabled
	// values that occur more than once, while the state is encoded
	Pool []Value `json:"pool,omitempty"`

	// Draining says that the history is full: a loop starts nothing new while something runs, so
	// that all is answered in the end and another run can go on. No part of the run either.
	Draining bool `json:"-"`
	// Holds says that the run has taken locks by their state keys. They are kept track of
	// elsewhere.
	Holds bool `json:"-"`

	Trace Trace `json:"-"` // no part of the run; nil tells nobody

	apart *apart // the values that EncodeLean has told apart
}

// ListKind says how a list of steps is run and left.
type ListKind string

const (
	Steps      ListKind = "steps"   // of the run
	Block      ListKind = "block"   // of subworkflow and if: has ids, start and end of its own
	Then       ListKind = "then"    // of if: start and end are those of the list around
	Case       ListKind = "case"    // of switch: as oneLine; its condition has been judged
	OfStep     ListKind = "handler" // of a step
	OfWorkflow ListKind = "workflow-handler"
)

// Handles tells whether the list is an error handler.
func (k ListKind) Handles() bool { return k == OfStep || k == OfWorkflow }

// Frame is a list of steps that is being run.
type Frame struct {
	Kind  ListKind `json:"kind"`
	Ref   string   `json:"ref,omitempty"` // of the step that it belongs to
	Index int      `json:"index"`
	// The rest is for handlers.
	Failure *Failure `json:"failure,omitempty"`
	// the step that failed, the innermost outside of handlers
	From    string `json:"from,omitempty"`
	Ran     bool   `json:"ran,omitempty"`
	Skipped bool   `json:"skipped,omitempty"` // the last item was not run
	Out     Value  `json:"out,omitzero"`
}

// Record is what is known of a step.
type Record struct {
	Started int       `json:"started"`
	Done    int       `json:"done,omitempty"`
	Before  []string  `json:"before,omitempty"` // the steps that came before it, the latest first
	Last    *Instance `json:"last,omitempty"`
}

// Phase says how far an instance is.
type Phase string

const (
	InBody   Phase = "body"
	InOutput Phase = "output"
	IsDone   Phase = "done"
)

// Instance is one execution of a step.
type Instance struct {
	N        int              `json:"n,omitempty"`
	Try      int              `json:"try,omitempty"` // how often it was resumed
	Phase    Phase            `json:"phase,omitempty"`
	Previous string           `json:"previous,omitempty"`
	Prev     Value            `json:"prev,omitzero"` // the output before it
	Vars     Value            `json:"vars,omitzero"` // the variables at its start
	Inputs   Value            `json:"inputs,omitzero"`
	Reads    map[string]Value `json:"reads,omitempty"` // state keys that its expressions have read
	Output   Value            `json:"output,omitzero"`
	Failure  *Failure         `json:"failure,omitempty"`
	Next     string           `json:"next,omitempty"` // where it goes, if not to the step after it
	Return   bool             `json:"return,omitempty"`
	Polls    int              `json:"polls,omitempty"`
	// of its timeout, if that may be what a state key said
	Limit time.Duration `json:"limit,omitempty"`
	// how often its timeout was armed, since it was resumed
	Armed int `json:"armed,omitempty"`
	// it has failed before anybody was asked for work
	Unasked bool `json:"unasked,omitempty"`

	Many     bool     `json:"many,omitempty"`  // it runs a loop
	Folded   Value    `json:"folded,omitzero"` // what reducing has come to
	Children []*Child `json:"children,omitempty"`
	// Loop stands for many children while a state is encoded.
	Loop    *packedLoop `json:"loop,omitempty"`
	targets             // of many children
	Width   int         `json:"width,omitempty"` // how many children run at once
}

// targets are what a loop runs over: the whole numbers from first on, or a list.
type targets struct {
	first *int64
	list  Value
}

// Child is a run that a step has recorded.
type Child struct {
	Status string   `json:"status,omitempty"` // recorded, open, done or failed
	Target Value    `json:"target,omitzero"`
	Output Value    `json:"output,omitzero"`
	Index  int      `json:"index"`
	Ending bool     `json:"ending,omitempty"` // it was canceled, and its end is still to come
	Fault  *Failure `json:"fault,omitempty"`
	State  []byte   `json:"state,omitempty"` // of one that failed
	lacks  bool     // it is done, and its output stands in the history
}

const (
	Recorded    = ""
	Open        = "open"
	ChildDone   = "done"
	ChildFailed = "failed"
)

// Do says what a run asks for. Package machine has its words.
type Do string

// Wait is what a run waits for.
type Wait struct {
	For Do     `json:"for"`
	ID  string `json:"id"`
	// a state key that an expression reads, or the name of a signal
	Key string `json:"key,omitempty"`
	// Whole says that it is not for the step on top but for the run.
	Whole bool `json:"whole,omitempty"`
}

// SetVar replaces the variables by a copy that has one more.
func (s *State) SetVar(name string, v any) {
	vars := maps.Clone(s.Vars.Map())
	if vars == nil {
		vars = map[string]any{}
	}
	if v == nil {
		delete(vars, name)
	} else {
		vars[name] = v
	}
	s.Vars = Value{V: vars}
}

// Record is that of a step; it is made if there is none.
func (s *State) Record(ref string) *Record {
	r := s.Records[ref]
	if r == nil {
		r = &Record{}
		if s.Records == nil {
			s.Records = map[string]*Record{}
		}
		s.Records[ref] = r
	}
	return r
}

// CameFrom notes the step before; each stands once, so their number is that of the steps at most.
func (r *Record) CameFrom(ref string) {
	if len(r.Before) > 0 && r.Before[0] == ref {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(r.Before), func(o string) bool { return o == ref })
	r.Before = append([]string{ref}, rest...)
}

// ID names what an instance asks for.
func (i *Instance) ID(ref string) string {
	id := ref + "#" + strconv.Itoa(i.N)
	if i.Try > 0 {
		id += "." + strconv.Itoa(i.Try)
	}
	return id
}

// Timer names the timeout that was armed last. Each has a name of its own: one that passed when it
// was taken back may still be told of.
func (i *Instance) Timer(ref string) string {
	id := i.ID(ref) + "!timeout"
	if i.Armed > 1 {
		id += "." + strconv.Itoa(i.Armed)
	}
	return id
}

// Sound tells whether an instance can be gone on with.
func (i *Instance) Sound() bool {
	return i.N >= 0 && i.Try >= 0 && i.Polls >= 0 && i.Armed >= 0 && i.Limit >= 0 && i.Width >= 0 &&
		!slices.ContainsFunc(i.Children,
			func(c *Child) bool { return c == nil || c.Status == ChildFailed && c.Fault == nil })
}
