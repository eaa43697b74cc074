package checker

import (
	"fmt"
	"slices"
	"time"

	"github.com/droverhq/drover/schemas"
)

// The limits that hold where neither the event nor the run names one.
const (
	defaultWorkflowTimeout = schemas.Duration(365 * 24 * time.Hour)
	defaultDeciderTimeout  = schemas.Duration(10 * time.Second)
	defaultStartToClose    = schemas.Duration(10 * time.Minute)
)

// instant is when something was set: the time of its event and, if known, the server's time of its
// record. Times of the server tell how long it took only if its clock was set back as often before
// either.
type instant struct {
	event, server schemas.Timestamp
	steps         int
}

// History checks one run, event by event or record by record. Feed it in order and call
// [History.End] at the end.
type History struct {
	workflowID, run string
	found           []Violation

	progress
	closedBy schemas.EventType // empty while the run is open
	paused   int64             // the WorkflowPaused that holds, 0 if none
	// continuation is when the run is asked to continue as new, hold what keeps it from being
	// asked; nil for none.
	continuation *schemas.ContinuationPolicy
	hold         *schemas.ContinuationHeld
	once         map[string]int64 // the runs of children, and the events that asked for them

	runLimits
	decider decider
	openWork
	lockRecords
	relations
	unread unread
	copies copies
	// of the chain
	signals, requests requestIDs
	policy            schemas.ChildPolicy // of a run that was ended by force
	unkept            bool                // its retention is disabled
	// sees every event that counts; may be nil
	witness     func(*History, schemas.Event)
	steppedBack func(to, from schemas.Timestamp)

	records recordState
}

// progress is how far a history was read.
type progress struct {
	count       int64 // events seen
	last        int64 // id of the last one
	lastUnknown int64 // the last event of an unknown type
	time        schemas.Timestamp
}

// runLimits are what the run says of its times.
type runLimits struct {
	start     instant
	timeout   schemas.Duration // of the run
	scheduled limits           // of its deciders
	defaults  schemas.ActivityDefaults
}

// openWork is what has begun and may still end.
type openWork struct {
	activities map[int64]*activity
	activityID map[string]int64
	timers     map[string]*timer
	exchanges  map[int64]*exchange
}

// relations says where a run stands in its chain and its family.
type relations struct {
	// successor and predecessor are run ids of a continuation.
	successor, predecessor string
	startRequest           string
	link                   link
	// how the run closed, if it continued as new
	continued *schemas.WorkflowContinuedAsNew
}

// New returns a checker of one run. An empty workflowID or run is taken from the first event.
func New(workflowID, run string) *History {
	return &History{
		workflowID: workflowID, run: run, once: make(map[string]int64),
		openWork: openWork{
			activities: make(map[int64]*activity), activityID: make(map[string]int64),
			timers: make(map[string]*timer), exchanges: make(map[int64]*exchange),
		},
		lockRecords: lockRecords{
			locks: make(map[string]uint64), held: make(map[string]holding),
			lockLimits: make(map[string]int),
		},
		signals:  requestIDs{most: inheritedSignals, recent: &recent{}},
		requests: requestIDs{most: inheritedRequests, recent: &recent{}},
	}
}

// CheckEvents checks a whole history, or a prefix of one that ends where a record ends.
func CheckEvents(workflowID, run string, events []schemas.Event) []Violation {
	h := New(workflowID, run)
	var all []Violation
	for _, e := range events {
		all = append(all, h.Event(e)...)
	}
	return append(all, h.End()...)
}

// Event takes the next event and returns the rules that it breaks. After a violation the checker
// carries on as well as it can; what follows may then be a consequence.
func (h *History) Event(e schemas.Event) []Violation {
	h.event(e)
	return h.take()
}

// End returns the rules that are broken if the history ends here.
func (h *History) End() []Violation {
	if h.count == 0 {
		h.report(RuleFirst, 0,
			"the history has no events; want WorkflowStarted and DeciderScheduled")
	}
	h.checkWake()
	h.checkAgain("")
	h.checkParked("")
	return h.take()
}

// Closed tells whether a closing event was seen.
func (h *History) Closed() bool { return h.closedBy != "" }

func (h *History) take() []Violation {
	found := h.found
	h.found = nil
	return found
}

func (h *History) report(rule string, id int64, format string, args ...any) {
	h.found = append(h.found, Violation{
		Rule: rule, WorkflowID: h.workflowID, Run: h.run, EventID: id,
		Detail: fmt.Sprintf(format, args...),
	})
}

func (h *History) event(e schemas.Event) {
	if !h.frame(e) {
		return
	}
	wakes := h.wakes(e)
	h.checkParked(e.Type())
	h.checkDecided(e)
	h.checkCopy(e)
	_ = h.applyWorkflow(e) || h.applyDecider(e) || h.applyActivity(e) || h.applyTimer(e) ||
		h.applyExchange(e)
	h.unread.see(e, wakes)
	t := e.Type()
	if t.Closes() {
		h.closedBy = t
		h.checkLetGo(e)
	}
	if h.witness != nil {
		h.witness(h, e)
	}
	switch {
	case t.Closes():
		h.release()
	case wakes:
		h.decider.woken, h.decider.wokenBy = e.ID, t
	case !t.Known():
		h.lastUnknown = e.ID
	}
}

// release lets go of what no event can refer to any more. Whoever checks a namespace holds a closed
// run for each workflow id.
func (h *History) release() {
	h.openWork, h.locks, h.lockLimits = openWork{}, nil, nil
	if h.successor == "" {
		h.once, h.signals.latest, h.held = nil, nil, nil
		h.signals.recent, h.requests.recent = &recent{}, &recent{}
	}
}

// frame checks what holds of every event, and tells whether its content is worth a look.
func (h *History) frame(e schemas.Event) bool {
	typ := e.Type()
	if e.ID != h.last+1 {
		h.report(RuleIDs, e.ID, "%s has id %d after id %d; want %d", typ, e.ID, h.last, h.last+1)
	}
	h.last = e.ID
	h.count++
	switch started := typ == schemas.EventWorkflowStarted; {
	case h.count == 1 && !started:
		h.report(RuleFirst, e.ID, "the history begins with %s; want WorkflowStarted", typ)
	case h.count == 2 && typ != schemas.EventDeciderScheduled:
		h.report(RuleFirst, e.ID, "%s follows WorkflowStarted; want DeciderScheduled", typ)
	case h.count > 1 && started:
		h.report(RuleFirst, e.ID, "a second WorkflowStarted")
	}
	if h.Closed() {
		h.report(RuleClosed, e.ID, "%s follows %s, which closed the run", typ, h.closedBy)
		return false
	}
	if e.Time < h.time {
		h.report(RuleTime, e.ID, "%s is of %s, %s before the event that it follows",
			typ, e.Time, h.time.Sub(e.Time))
	}
	h.time = max(h.time, e.Time)
	if e.Attributes == nil {
		h.report(RuleEvent, e.ID, "the event has no type and no attributes")
		return false
	}
	return true
}

func (h *History) now(e schemas.Event) instant {
	return instant{e.Time, h.records.at, h.records.steps}
}

// checkEarly checks that e, which ends a wait, does not end it before its time.
func (h *History) checkEarly(e schemas.Event, since instant, limit schemas.Duration, what string) {
	now := h.now(e)
	switch {
	case !limit.Limited():
		h.report(RuleEarly, e.ID, "%s: %s has no limit", e.Type(), what)
	case schemas.Duration(now.event-since.event) < limit:
		h.report(RuleEarly, e.ID, "%s comes %s after it was set; %s is %s",
			e.Type(), now.event.Sub(since.event), what, limit)
	case now.server != 0 && since.server != 0 && now.steps == since.steps &&
		schemas.Duration(now.server-since.server) < limit:
		h.report(RuleEarly, e.ID, "by the server's clock %s comes %s after it was set; %s is %s",
			e.Type(), now.server.Sub(since.server), what, limit)
	}
}

// noteSignal checks a signal, unless it is a copy: its original is in the chain. Of most of these
// the run knows the id already.
func (h *History) noteSignal(e schemas.Event, a *schemas.Signal) {
	id := signalID(a)
	switch {
	case a.OriginRun == "":
		h.checkSignal(e, id)
	case id != "" && !slices.Contains(h.signals.latest, id):
		h.signals.remember(id)
	}
}

// checkSignal and checkRequest check that e does not repeat one of the latest ids, nor one of the
// last ten minutes. An empty id is none. Who uses an old one again, say one for each minute of the
// day, means it, and nobody remembers it.
func (h *History) checkSignal(e schemas.Event, id string) {
	h.checkOnce(e, id, &h.signals)
}

func (h *History) checkRequest(e schemas.Event, id string) {
	h.checkOnce(e, id, &h.requests)
}

func (h *History) checkOnce(e schemas.Event, id string, ids *requestIDs) {
	if id == "" {
		return
	}
	switch ago := ids.recent.note(id, e.Time); {
	case ago >= 0:
		h.report(RuleOnce, e.ID, "%s repeats the request %q, which the chain has had %s before",
			e.Type(), id, ago)
	case slices.Contains(ids.latest, id):
		h.report(RuleOnce, e.ID, "%s repeats the request %q, which the chain has had", e.Type(), id)
	}
	ids.remember(id)
}
