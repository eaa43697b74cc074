package decider_test

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/internal/sample"
	"github.com/droverhq/drover/schemas"
)

// behaviour is what a run does in whatever way its decisions are made: a raw decider, workflow code,
// a flow. Its name is the workflow type and the workflow id, too.
type behaviour struct {
	name  string
	start drover.StartOptions
	acts  []act
	// lates is how many answers that complete or continue the run are overtaken by a signal.
	lates int32
	want  string // status, and result or reason
	// course is the types of events of the run, and of that which continues it, in their order. Other
	// types are passed over.
	course string
	also   func(s *stage)
	no     map[string]string // ways that cannot say it, and why
}

// act is what is done to a run from outside, at a time after its start. Those at 0 come before the
// first decision of any run.
type act struct {
	at time.Duration
	do func(s *stage)
}

// stage is a behaviour while it is played.
type stage struct {
	*behaviour
	t   *testing.T
	e   *drovertest.Env
	run *drover.Run

	overtaken atomic.Int32
}

// open is the run that is open, of those that continue each other.
func (s *stage) open() *drover.Run { return s.e.Client.Run(s.name, "") }

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Errorf("%s: %v", s.name, err)
	}
}

// way is a way to decide. It knows behaviours by their names, and the children kid-good, kid-bad and
// kid-waits. It keeps no run in memory if it is forgetful.
type way struct {
	name     string
	register func(t *testing.T, r workflow.Registry, forgetful bool)
}

// circumstance is what must make no difference.
type circumstance struct {
	name      string
	forgetful bool // no run is kept in memory, and two workers share the tasks
	loses     bool // the first answer to each task is lost
	replaced  bool // before each act the server crashes, and another worker takes over
}

// Every way to decide shows the same behaviour, whatever happens to workers and servers meanwhile.
// The bubble of each test ends only if no goroutine is left.
func TestConformance(t *testing.T) {
	for _, w := range []way{rawWay, codeWay, flowWay} {
		for _, c := range []circumstance{
			{name: "undisturbed"},
			{name: "nothing is kept in memory", forgetful: true},
			{name: "each answer is lost once", loses: true},
			{name: "others take over", replaced: true},
		} {
			t.Run(w.name+"/"+c.name, func(t *testing.T) {
				sample.OneOfEight(t)
				drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
					conform(t, e, w, c)
				})
			})
		}
	}
}

// conform plays all behaviours at once.
func conform(t *testing.T, e *drovertest.Env, w way, c circumstance) {
	stages := begin(t, e, w)
	acts := map[time.Duration][]func(){}
	for _, s := range stages {
		for _, a := range s.acts {
			acts[a.at] = append(acts[a.at], func() { a.do(s) })
		}
	}
	for _, do := range acts[0] {
		do()
	}
	delete(acts, 0)
	e.Go(handsOf(e))
	hire := func() (stop func()) {
		workers := []drovertest.Worker{workerOf(t, e, w, c, stages)}
		if c.forgetful {
			workers = append(workers, workerOf(t, e, w, c, stages))
		}
		return e.Go(workers...)
	}
	stop, begun := hire(), time.Now()
	for _, at := range slices.Sorted(maps.Keys(acts)) {
		e.Sleep(time.Until(begun.Add(at)))
		if c.replaced {
			stop()
			e.Crash(time.Second)
			stop = hire()
		}
		for _, do := range acts[at] {
			do()
		}
	}
	ends := map[*stage]*drover.Outcome{} // a test that has failed waits for nothing more
	for _, s := range stages {
		ends[s] = e.Wait(s.run)
	}
	for s, o := range ends {
		s.judge(w, o)
	}
}

// begin starts a run of each behaviour that a way has.
func begin(t *testing.T, e *drovertest.Env, w way) map[string]*stage {
	stages := map[string]*stage{}
	for _, b := range behaviours() {
		if b.no[w.name] != "" {
			continue
		}
		o := b.start
		o.ID = b.name
		if o.ActivityDefaults == nil {
			o.ActivityDefaults = &schemas.ActivityDefaults{List: contract.DefaultList}
		}
		run, err := e.Client.Start(t.Context(), b.name, who{"Ada"}, &o)
		if err != nil {
			t.Fatal(err)
		}
		stages[b.name] = &stage{behaviour: &b, t: t, e: e, run: run}
	}
	return stages
}

// judge compares how the run has ended.
func (s *stage) judge(w way, o *drover.Outcome) {
	s.t.Helper()
	got := string(o.Status)
	switch o.Status {
	case schemas.StatusCompleted:
		result, err := s.e.Client.Payload(s.t.Context(), o.Result)
		s.must(err)
		got += " " + string(result)
	case schemas.StatusTerminated:
		got += " " + o.Reason
	}
	if got != s.want {
		s.t.Errorf("%s: the run is %.200s, want %.200s (%s %s)",
			s.name, got, s.want, o.Reason, o.Details)
	}
	var history drovertest.History
	for event, err := range s.run.History(s.t.Context(), drover.HistoryOptions{}) {
		s.must(err)
		history = append(history, event)
	}
	if o.Run != s.run.RunID {
		history = append(history, s.e.History(s.run.ID)...)
	}
	want, course := strings.Fields(s.course), []string{}
	for _, event := range history {
		if typ := string(event.Type()); slices.Contains(want, typ) {
			course = append(course, typ)
		}
	}
	if !slices.Equal(course, want) {
		s.t.Errorf("%s: the history of %s has\n%s, want\n%s",
			s.name, w.name, strings.Join(course, " "), strings.Join(want, " "))
	}
	if s.also != nil {
		s.also(s)
	}
}
