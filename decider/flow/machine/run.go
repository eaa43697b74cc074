package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/decider/flow/condition"
	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/decider/flow/value"
)

// Limits of what a run does at once.
const (
	// MaxIdle is how many steps run without a wait before the run fails. Those that make much of
	// large values count for more, or a run could keep its decider busy for minutes: see weigh.
	MaxIdle = 100_000
	// MaxActions is how many actions one decision has at most; then the run goes on in the next.
	MaxActions = 500
	// MaxActionBytes is how much the values and texts of these actions come to, as value.Size
	// counts, before the run goes on in the next: a decision travels in one message.
	MaxActionBytes = 128 << 10
	// MaxDepth is how many lists of steps are inside each other.
	MaxDepth = 200
)

// What a body returns besides a failure.
var (
	errWaiting = errors.New("the step waits")
	// into a list of the step, or to another step
	errMoved = errors.New("the run goes on elsewhere")
)

// result is what a body comes to. A step that sets no output passes on the one before it.
type result struct {
	output any
	set    bool
	next   string
	end    bool // return: the run ends with output
}

type machine struct {
	p      *Program
	s      *run.State
	now    time.Time
	random func() float64
	acts   []Action
	bytes  int    // of the acts
	began  string // the place where a replay or a resume has begun

	env   *expr.Env // of the latest act
	spent int       // since weigh: what was spent in the acts before
}

func (m *machine) do(a Action) {
	m.acts = append(m.acts, a)
	m.bytes += a.size()
	if a.Do == LogLine {
		m.s.Trace.Tell("", run.Logged, a, nil)
	}
}

// say writes a line of the log.
func (m *machine) say(level, text string) { m.do(Action{Do: LogLine, Level: level, Text: text}) }

// full tells that what else there is to be done is left to the next decision.
func (m *machine) full() bool { return len(m.acts) >= MaxActions || m.bytes >= MaxActionBytes }

func (m *machine) top() *run.Frame { return &m.s.Stack[len(m.s.Stack)-1] }

// list is what a frame runs.
func (m *machine) list(fr *run.Frame) *list {
	switch fr.Kind {
	case run.Steps:
		return m.p.body
	case run.OfWorkflow:
		return m.p.handlers
	}
	st := m.p.steps[fr.Ref]
	switch fr.Kind {
	case run.OfStep:
		return st.handlers
	case run.Case:
		return &list{kind: run.Case, owner: st, steps: st.cases.steps[fr.Index : fr.Index+1]}
	}
	return st.block
}

// at is where a frame stands in its list.
func (m *machine) at(fr *run.Frame) int {
	if fr.Kind == run.Case {
		if fr.Ran {
			return 1
		}
		return 0
	}
	return fr.Index
}

// current is the step that a frame is at.
func (m *machine) current(fr *run.Frame) *step {
	if l := m.list(fr); m.at(fr) < len(l.steps) {
		return l.steps[m.at(fr)]
	}
	return nil
}

// handler is the innermost handler that runs; nil outside of handlers.
func (m *machine) handler() *run.Frame {
	for i := len(m.s.Stack) - 1; i >= 0; i-- {
		if m.s.Stack[i].Kind.Handles() {
			return &m.s.Stack[i]
		}
	}
	return nil
}

func (m *machine) push(fr run.Frame) error {
	if len(m.s.Stack) >= MaxDepth {
		return run.Failuref(run.NameLimit,
			"more than %d lists of steps are inside each other: move parts into workflows of their own",
			MaxDepth)
	}
	m.s.Stack = append(m.s.Stack, fr)
	m.s.Entered = false
	return errMoved
}

func (m *machine) pop() { m.s.Stack = m.s.Stack[:len(m.s.Stack)-1] }

// advance runs until the run waits or has ended.
func (m *machine) advance() {
	for m.s.Status == run.Running && m.s.Wait == nil {
		fr := m.top()
		st := m.current(fr)
		switch {
		case st == nil:
			m.endList()
		case m.s.Idle >= MaxIdle:
			m.s.Idle = 0
			m.broke(run.Failuref(
				run.NameLimit,
				"%d steps have run, or fewer with as much work, and none of them waits, the last one is %s: "+
					"the flow goes round in circles; put a sleep or a limit into the loop",
				MaxIdle, st.Ref,
			))
		case m.full():
			m.pause()
		case m.s.Entered:
			m.work(st)
		default:
			m.begin(st)
		}
	}
}

// pause lets the actions be written before there are more.
func (m *machine) pause() {
	m.s.Pauses = m.s.Pauses%1000 + 1
	id := fmt.Sprintf("pause#%d", m.s.Pauses)
	m.do(Action{Do: StartTimer, ID: id})
	m.s.Wait = &run.Wait{For: StartTimer, ID: id, Whole: true}
}

// perStep is how much is spent by steps that count for one.
const perStep = 50

// weigh is how many steps more the work since the last call counts for.
func (m *machine) weigh() int {
	m.spends(nil)
	n := m.spent / perStep
	m.spent = 0
	return n
}

// spends notes the work of the latest act, before another one begins.
func (m *machine) spends(next *expr.Env) {
	if m.env != nil {
		m.spent += m.env.Spent()
	}
	m.env = next
}

// fresh is an instance that has not begun.
func (m *machine) fresh(st *step) *run.Instance {
	return &run.Instance{
		N:        m.s.Record(st.Ref).Started + 1,
		Previous: m.s.At,
		Prev:     m.s.Prev,
		Vars:     m.s.Vars,
	}
}

// begin judges the condition of a step and enters it.
func (m *machine) begin(st *step) {
	if m.s.Trial == nil {
		m.s.Idle += 1 + m.weigh()
		m.s.Trial = m.fresh(st)
	}
	inst := m.s.Trial
	if st.cond != nil && m.top().Kind != run.Case {
		x := m.act(st, inst)
		ok, err := x.holds(st.cond, m.subject())
		x.keep()
		switch {
		case errors.Is(err, errRead):
			m.read(x, st.Ref)
			return
		case err != nil:
			m.adopt(st, inst)
			inst.Unasked = st.works()
			m.throw(run.FailureOf(err))
			return
		case !ok:
			m.s.Trial = nil
			fr := m.top()
			fr.Index++
			fr.Skipped = true
			return
		}
	}
	var limit time.Duration
	var wrong error
	if st.timed() {
		x := m.act(st, inst)
		if limit, wrong = x.limit(); errors.Is(wrong, errRead) {
			m.read(x, st.Ref)
			return
		}
		if len(inst.Reads) > 0 { // it may be armed again when they are forgotten
			inst.Limit = limit
		}
	}
	m.adopt(st, inst)
	if st.Replay != "" {
		m.mark(st)
	}
	if wrong != nil {
		inst.Unasked = st.works()
		m.throw(run.FailureOf(wrong))
		return
	}
	if st.timed() {
		m.armFor(st, inst, limit)
	}
	m.work(st)
}

// subject is what conditions judge by themselves: the error in a handler.
func (m *machine) subject() condition.Subject {
	if fr := m.handler(); fr != nil {
		return condition.Failed(fr.Failure.Subject())
	}
	return condition.Subject{}
}

// adopt makes an instance the last one of its step.
func (m *machine) adopt(st *step, inst *run.Instance) {
	r := m.s.Record(st.Ref)
	r.Started++
	inst.N, inst.Phase = r.Started, run.InBody
	r.Last = inst
	m.s.Trial, m.s.Entered = nil, true
	if m.handler() == nil {
		r.CameFrom(inst.Previous)
		m.s.At = st.Ref
	}
	m.s.Trace.Tell(st.Ref, run.Began, nil, nil)
}

// timed tells whether a step has a timeout. Of retry it has another meaning; that of nested runs is
// theirs.
func (st *step) timed() bool { return st.timeout != nil && st.Type != "retry" }

// limit is how long a step with a timeout may take.
func (x *act) limit() (time.Duration, error) {
	d, err := x.duration(x.st.timeout)
	if errors.Is(err, errRead) && x.inst.Limit > 0 {
		return x.inst.Limit, nil
	}
	if err != nil {
		return 0, fmt.Errorf("timeout: %w", err)
	}
	return d, nil
}

// arm starts the timeout of a step that is gone on with, unless it runs already.
func (m *machine) arm(st *step, inst *run.Instance) error {
	if _, runs := m.s.Timers[inst.Timer(st.Ref)]; runs || !st.timed() {
		return nil
	}
	d, err := m.act(st, inst).limit()
	if err != nil {
		return err
	}
	m.armFor(st, inst, d)
	return nil
}

func (m *machine) armFor(st *step, inst *run.Instance, d time.Duration) {
	inst.Armed++
	m.timeout(inst.Timer(st.Ref), st.Ref, d)
}

func (m *machine) timeout(id, ref string, d time.Duration) {
	if m.s.Timers == nil {
		m.s.Timers = map[string]string{}
	}
	m.s.Timers[id] = ref
	m.do(Action{Do: StartTimer, ID: id, Delay: d})
}

// work runs the body of the step on top, or goes on where its instance is.
func (m *machine) work(st *step) {
	inst := m.s.Record(st.Ref).Last
	if inst.Phase == run.InOutput {
		m.conclude(st, inst)
		return
	}
	x := m.act(st, inst)
	r, err := m.start(x)
	m.noteAsked(x, err)
	m.settle(x, r, err)
}

// noteAsked notes whether the body has asked for work, or has failed before: nothing was done then,
// so nothing can be done twice.
func (m *machine) noteAsked(x *act, err error) {
	switch {
	case err == nil, errors.Is(err, errRead), errors.Is(err, errMoved):
	case errors.Is(err, errWaiting):
		if w := m.s.Wait; w != nil && (w.For == Schedule || w.For == StartChild) {
			x.inst.Unasked = false
		}
	default:
		x.inst.Unasked = x.st.works() && (x.inst.Try == 0 || x.inst.Unasked)
	}
}

// works tells whether a step asks somebody for work: an activity, or a workflow of another type.
func (st *step) works() bool {
	switch st.Type {
	case "activity",
		"child",
		"http",
		"ssh",
		"shell",
		"container",
		"publish",
		"request",
		"load",
		"once":
		return st.child == ""
	}
	return false
}

// settle judges what a body returned.
func (m *machine) settle(x *act, r result, err error) {
	x.keep()
	switch {
	case errors.Is(err, errRead):
		m.read(x, x.st.Ref)
	case errors.Is(err, errWaiting), errors.Is(err, errMoved):
	case err != nil:
		m.throw(run.FailureOf(err))
	default:
		m.finish(x.st, x.inst, r)
	}
}

// read asks for the state key that an expression needs.
func (m *machine) read(x *act, ref string) {
	id := x.inst.ID(ref) + "?" + x.need
	m.do(Action{Do: ReadState, ID: id, Name: x.need})
	m.s.Wait, m.s.Idle = &run.Wait{For: ReadState, ID: id, Key: x.need, Whole: x.st == nil}, 0
}

// finish ends the body of a step.
func (m *machine) finish(st *step, inst *run.Instance, r result) {
	inst.Output = m.s.Prev
	if r.set {
		inst.Output = run.Value{V: r.output}
	}
	inst.Next, inst.Return, inst.Phase = r.next, r.end, run.InOutput
	inst.Reads = nil // what the body has read may have changed since
	m.conclude(st, inst)
}

// conclude makes the output of a step and goes on after it.
func (m *machine) conclude(st *step, inst *run.Instance) {
	x := m.act(st, inst)
	x.own = &inst.Output
	body := inst.Output
	if st.output != nil {
		v, err := x.eval(st.output)
		if errors.Is(err, errRead) {
			m.read(x, st.Ref)
			return
		}
		if err != nil {
			m.throw(run.FailureOf(fmt.Errorf("output: %w", err)))
			return
		}
		inst.Output = run.Value{V: v}
	}
	next := inst.Next
	if next == "" && st.next != nil && st.Type != "retry" && st.Type != "goto" {
		v, err := x.eval(st.next)
		if errors.Is(err, errRead) {
			inst.Output = body // the output is made again then
			m.read(x, st.Ref)
			return
		}
		if next, err = textOf(v, err); err != nil {
			m.throw(run.FailureOf(fmt.Errorf("next: %w", err)))
			return
		}
	}
	inst.Phase, inst.Failure, inst.Next = run.IsDone, nil, next
	m.s.Record(st.Ref).Done++
	if m.s.Resumed == st.Ref {
		m.s.Resumed, m.s.Resumes = "", 0
	}
	m.s.Trace.Tell(st.Ref, run.Ended, inst.Output.V, nil)
	m.s.Prev, m.s.Entered = inst.Output, false
	fr := m.top()
	fr.Ran, fr.Skipped = true, false
	if fr.Kind.Handles() {
		fr.Out = inst.Output
	}
	switch {
	case inst.Return:
		m.returned(inst.Output)
	case next == "":
		if fr.Kind != run.Case {
			fr.Index++
		}
	default:
		if err := m.jump(next); err != nil && !errors.Is(err, errMoved) {
			m.s.Entered, inst.Phase = true, run.InOutput
			m.throw(run.FailureOf(err))
		}
	}
	m.sweep()
}

func textOf(v any, err error) (string, error) {
	if err != nil || v == nil {
		return "", err
	}
	return value.Text(v)
}

// returned ends the run with what return brought.
func (m *machine) returned(v run.Value) {
	m.s.Result = v
	m.s.Stack = m.s.Stack[:1]
	// what was read before the first step may have changed since
	m.s.Status, m.s.Whole.Reads = run.Closing, nil
	m.closeRun()
}

// waitFor makes the run wait for the answer to an action.
func (m *machine) waitFor(a Action) error {
	m.do(a)
	return m.await(run.Wait{For: a.Do, ID: a.ID})
}

func (m *machine) await(w run.Wait) error {
	m.s.Wait, m.s.Idle = &w, 0
	return errWaiting
}
