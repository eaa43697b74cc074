package checker

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/droverhq/drover/schemas"
)

// inheritedSignals and inheritedRequests are how many of the latest signals, and requests of
// operators, of its chain a continued run must know. A repeat comes from a sender that got no
// answer, so it comes soon, and a chain may go on for ever.
const (
	inheritedSignals  = 1000
	inheritedRequests = 100
)

// leastRecord is what a record has room for, in bytes, with the least that a server may take for a
// message. What takes more together with the input need not be inherited whole: the oldest may be
// missing.
const leastRecord = 64 << 10

// latest are the last of a list, at most so many.
func latest(ids []string, most int) []string { return ids[max(0, len(ids)-most):] }

// link is what a run says of where it stands among others.
type link struct {
	first       string // run of the chain that continued as new; empty in that run itself
	parent      schemas.Execution
	parentEvent int64 // the ChildScheduled of the parent, 0 if there is no parent
	depth       int
	typ         string
	version     string
	mode        schemas.StartMode
}

func linkOf(a *schemas.WorkflowStarted) link {
	l := link{
		first: a.FirstExecutionRun, parentEvent: a.ParentScheduledEventID, depth: a.Depth,
		typ: a.WorkflowType, version: a.WorkflowTypeVersion,
		mode: a.Mode(),
	}
	if a.ParentWorkflowExecution != nil {
		l.parent = *a.ParentWorkflowExecution
	}
	return l
}

func (l link) isChild() bool { return l.parent != (schemas.Execution{}) }

// chain is the first run of the chain that the run belongs to.
func (h *History) chain() string {
	if h.link.first != "" {
		return h.link.first
	}
	return h.run
}

// signalID is what the service knows a repeat of a signal by; empty if it cannot.
func signalID(a *schemas.Signal) string {
	if a.ExternalWorkflowExecution != nil {
		return externalID(a.ExternalWorkflowExecution, a.ExternalScheduledEventID)
	}
	return a.RequestID
}

// externalID is signalID for what another workflow has sent; empty if none did.
func externalID(source *schemas.Execution, event int64) string {
	if source == nil || event == 0 {
		return ""
	}
	return source.Run + "." + strconv.FormatInt(event, 10)
}

// content is the SHA-256 of a payload. A large one stands elsewhere, on one side perhaps, and its
// reference holds the same.
func content(p schemas.Payload) (sum [sha256.Size]byte) {
	if ref, ok := p.Ref(); ok {
		if b, err := hex.DecodeString(ref.Digest); err == nil && len(b) == len(sum) {
			return [sha256.Size]byte(b)
		}
	}
	return sha256.Sum256(p)
}

// checkContinuation checks what a run took over from the one that it continues.
func (w *Workflow) checkContinuation(
	before *History, r *schemas.Record, a *schemas.WorkflowStarted,
) []Violation {
	var found []Violation
	broken := func(rule, format string, args ...any) { found = append(found, w.violation(rule, r, format, args...)) }
	asked, was, is := before.continued, before.link, w.current.link
	if is.typ != was.typ || is.typ != asked.WorkflowType ||
		is.version != asked.WorkflowTypeVersion {
		broken(RuleContinuation,
			"the run is of type %q version %q; run %s was of type %q and continued as %q version %q",
			is.typ, is.version, before.run, was.typ, asked.WorkflowType, asked.WorkflowTypeVersion)
	}
	if content(a.Input) != content(asked.Input) {
		broken(RuleContinuation, "the run has another input than run %s gave to it", before.run)
	}
	if a.UnreadSignals != asked.UnreadSignals {
		broken(RuleContinuation, "the run begins with %d signals of run %s; that had not read %d",
			a.UnreadSignals, before.run, asked.UnreadSignals)
	}
	if is.first != before.chain() {
		broken(RuleContinuation, "the run names %q as the first of its chain; it is %q",
			is.first, before.chain())
	}
	if is.parent != was.parent || is.parentEvent != was.parentEvent || is.depth != was.depth {
		broken(RuleContinuation,
			"the run is a child of %v event %d at depth %d; run %s was one of %v event %d at depth %d",
			is.parent, is.parentEvent, is.depth, before.run, was.parent, was.parentEvent, was.depth)
	}
	if a.StartMode != "" && is.mode != was.mode.Continued() {
		broken(RuleContinuation, "the run was begun by %q; run %s was begun by %q",
			is.mode, before.run, was.mode)
	}
	if a.StartMode != "" && !reflect.DeepEqual(a.Continuation, before.continuation) {
		broken(RuleInherit, "the run has the continuation policy %+v; run %s had %+v",
			a.Continuation, before.run, before.continuation)
	}
	if a.StartMode != "" && !reflect.DeepEqual(a.Held, before.hold) {
		broken(RuleInherit, "the run is held by %+v; run %s was held by %+v",
			a.Held, before.run, before.hold)
	}
	signals, requests := latest(before.signals.latest, inheritedSignals),
		latest(before.requests.latest, inheritedRequests)
	fits := len(a.Input)+schemas.AttributesSize(a.Attributes)+schemas.WordsSize(a.TagList)+
		schemas.WordsSize(signals)+schemas.WordsSize(requests) <= leastRecord
	known := func(of string, got, want []string, most int) {
		if got = latest(got, most); !fits && len(got) < len(want) {
			want = latest(want, len(got))
		}
		if !slices.Equal(got, want) {
			broken(RuleInherit,
				"the run knows %d of the latest %s of its chain, %.100q; want %d, %.100q",
				len(got), of, got, len(want), want)
		}
	}
	known("signals and cancel requests", a.SignalIDs, signals, inheritedSignals)
	known("requests of operators", a.RequestIDs, requests, inheritedRequests)
	if got := holdings(a.Locks); before.lastUnknown == 0 && !maps.Equal(got, before.held) {
		broken(RuleInherit, "the run has %d locks from its chain, %v; want %d, %v",
			len(got), got, len(before.held), before.held)
	}
	return found
}
