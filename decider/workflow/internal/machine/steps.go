package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
	"github.com/droverhq/drover/decider/workflow/internal/match"
	"github.com/droverhq/drover/schemas"
)

// Live is a decision that is made now.
type Live struct {
	Context context.Context // ends when the decision is not wanted any more
	Started int64           // its DeciderStarted, which need not be in the history yet
	At      schemas.Timestamp
	// Suggested: the run is to continue as new when that fits.
	Suggested bool
	// Rest calls a function that waits for steps.
	Rest func(func())
	// NoSteps: no step may begin, since what the decision knows is not stored.
	NoSteps bool
	// First is how long the decision waits for the first of the steps that run, and Others how long
	// after that for the others. Those that have not ended by then are still there for the next
	// decision of this machine.
	First, Others time.Duration
	// Quick is the time of all quick steps of the decision: after it the next one is done as an
	// ordinary one, so that those before it are stored. One of them may take twice as long.
	Quick time.Duration
}

const (
	// stepLimit is how long a step may run, in all the decisions that it is carried over.
	stepLimit = time.Minute
	// stepGrace is how long a step may take to end when it is asked to.
	stepGrace = time.Second
)

// steps are those of a run that have no marker yet. A step runs on a goroutine of its own, which
// nothing else of the machine sees.
type steps struct {
	live   Live          // the latest decision
	open   []*openStep   // in the order in which they were asked for
	quick  time.Duration // that quick steps have taken in this decision
	failed *openStep     // by a mistake of the program

	mu      sync.Mutex
	running int
	ended   []*openStep // in the order in which they ended
	news    chan struct{}
}

// openStep is a step that the code waits for.
type openStep struct {
	*Step
	f        *Future
	spent    time.Duration // in decisions that the history has
	canceled bool
	began    bool
	over     bool      // it has ended, or is not waited for any more
	until    time.Time // when it is given up
	stop     context.CancelCauseFunc

	r   *Record // once it has ended
	err error
}

func (s *steps) find(name string) *openStep {
	for _, o := range s.open {
		if o.name == name {
			return o
		}
	}
	return nil
}

// spend counts the time of a decision in which steps may have run.
func (s *steps) spend(d time.Duration) {
	for _, o := range s.open {
		o.spent += d
	}
}

func (o *openStep) cancel() {
	o.canceled = true
	if o.stop != nil {
		o.stop(ErrCanceled)
	}
}

// waitForSteps lets steps run, and adds what comes of them to the decision. again says that there
// is to be another decision directly after this one.
//
// A step begins in a decision that asks for nothing else: what was asked for before is stored by
// then, and need not wait for the step.
func (m *Machine) waitForSteps() (again bool, err error) {
	s := &m.steps
	if len(s.open) == 0 || m.closing != nil {
		return false, nil
	}
	if len(m.asks) > 0 || m.steps.live.NoSteps {
		return true, nil
	}
	for _, o := range s.open {
		s.begin(o)
	}
	s.live.Rest(func() { err = m.gather() })
	if err != nil {
		return false, err
	}
	if len(m.asks) == 0 { // else what the others have done is stored first
		err = m.stepMistake()
	}
	return err == nil, err
}

// stepMistake returns what a step has done wrong.
func (m *Machine) stepMistake() error {
	o := m.steps.failed
	if o == nil {
		return nil
	}
	if e, ok := errors.AsType[*coroutine.Error](m.scheduler.Run()); ok && e.Kind == coroutine.Foreign {
		return fmt.Errorf("the step %s calls %s at %s: a step cannot use the workflow", o.name, e.What,
			e.Stack.Line())
	}
	return o.err
}

// gather waits for steps, and records those that have ended.
func (m *Machine) gather() error {
	s := &m.steps
	end := time.Now().Add(m.steps.live.First)
	timer := time.NewTimer(m.steps.live.First)
	defer timer.Stop()
	for {
		for _, o := range s.take() {
			switch {
			case o.over: // it was given up
			case o.err != nil:
				s.failed = o
			default:
				if len(m.asks) == 0 {
					timer.Reset(min(m.steps.live.Others, time.Until(end)))
				}
				m.record(o, o.r)
			}
			o.over = true
		}
		if !s.run() {
			return nil
		}
		select {
		case <-s.news:
		case <-timer.C:
			m.giveUp()
			return nil
		case <-m.steps.live.Context.Done():
			return context.Cause(m.steps.live.Context)
		}
	}
}

func (m *Machine) record(o *openStep, r *Record) {
	m.asks = append(m.asks, match.Ask{Decision: schemas.Decide(r.marker(o.name))})
}

// giveUp records the failure of steps that do not end though their time is over.
func (m *Machine) giveUp() {
	for _, o := range m.steps.open {
		if o.began && !o.over && time.Now().After(o.until) {
			o.over = true
			m.record(o, &Record{Fault: errTooLong.Error()})
		}
	}
}

// Busy tells whether steps run.
func (m *Machine) Busy() bool { return m.steps.run() }

// run tells whether some run.
func (s *steps) run() bool {
	return slices.ContainsFunc(s.open, func(o *openStep) bool { return o.began && !o.over })
}

// begin lets a step run, unless it does or has.
func (s *steps) begin(o *openStep) {
	if o.began {
		return
	}
	if s.news == nil {
		s.news = make(chan struct{}, 1)
	}
	o.began = true
	s.mu.Lock()
	s.running++
	s.mu.Unlock()
	left := stepLimit - o.spent
	switch {
	case o.canceled:
		o.r = &Record{Canceled: true}
	case left <= 0:
		o.r = &Record{Fault: errTooLong.Error()}
	default:
		o.until = time.Now().Add(left + stepGrace)
		ctx, stop := context.WithCancelCause(context.Background())
		o.stop = stop
		go s.do(ctx, o, left)
		return
	}
	s.end(o)
}

// do is the whole life of a step's goroutine.
func (s *steps) do(ctx context.Context, o *openStep, limit time.Duration) {
	ctx, free := context.WithTimeoutCause(ctx, limit, errTooLong)
	r, err := (*Record)(nil), fmt.Errorf("the step %s was ended by runtime.Goexit, which t.FailNow "+
		"calls too: let it return an error", o.name)
	defer func() {
		if v := recover(); v != nil {
			err = stepPanic(o.name, v)
		}
		if err == nil {
			if r = endedBy(ctx, r); r.Fault != "" && errors.Is(context.Cause(ctx), ErrCanceled) {
				r = &Record{Canceled: true}
			}
		}
		o.r, o.err = r, err
		free()
		o.stop(nil)
		s.end(o)
	}()
	r, err = o.Do(ctx, o.name)
}

func (s *steps) end(o *openStep) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.ended = append(s.ended, o)
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// take returns what has ended since the last call.
func (s *steps) take() (ended []*openStep) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended, s.ended = s.ended, nil
	return ended
}

// left is how many goroutines run.
func (s *steps) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// errLeft is why steps end when their run leaves the memory.
var errLeft = errors.New("the run leaves the memory of its worker: another one does the step again")

// stop has all steps end.
func (s *steps) stop() {
	for _, o := range s.open {
		if o.stop != nil {
			o.stop(errLeft)
		}
	}
}

// wait waits for the end of all that were stopped. The error tells of those that do not end.
func (s *steps) wait() error {
	timer := time.NewTimer(stepGrace)
	defer timer.Stop()
	for s.left() > 0 {
		select {
		case <-s.news:
		case <-timer.C:
			return fmt.Errorf("%d steps do not end though their contexts have, and stay", s.left())
		}
	}
	return nil
}
