package subject

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Root is the first token of every subject.
const Root = "drover"

// Namespace is the name of a tenant; its methods build the subjects of that tenant. Ids are encoded
// with [Token], lists are written as they are (see [ValidateName]).
type Namespace string

func (ns Namespace) start(kind string) string { return Root + "." + string(ns) + "." + kind }

func (ns Namespace) part(kind string, p int) string {
	return Root + "." + string(ns) + "." + kind + "." + strconv.Itoa(p)
}

// Signal is where anyone publishes a signal: drover.<ns>.signal.<wid>.<name>.
func (ns Namespace) Signal(wid, name string) string {
	return ns.start("signal.") + Token(wid) + "." + Token(name)
}

// SignalStored is the subject of a signal inside the signals stream:
// drover.<ns>.sig.<p>.<wid>.<name>.
func (ns Namespace) SignalStored(p int, wid, name string) string {
	return ns.part("sig", p) + "." + Token(wid) + "." + Token(name)
}

// SignalTransform gives source and destination of the signals stream's subject transform, which
// turns [Namespace.Signal] into [Namespace.SignalStored].
func (ns Namespace) SignalTransform(partitions int) (source, destination string) {
	return ns.AllSignals(), ns.start("sig.") +
		fmt.Sprintf("{{partition(%d,1)}}.{{wildcard(1)}}.{{wildcard(2)}}", max(partitions, 1))
}

// API is the request subject of one verb: drover.<ns>.api.<verb>.
func (ns Namespace) API(verb string) string { return ns.start("api.") + Token(verb) }

// Decide is where decision tasks of a workflow type are asked: drover.<ns>.decide.<type>.
func (ns Namespace) Decide(typ string) string { return ns.start("decide.") + Token(typ) }

// DecideSticky is where one worker is asked: drover.<ns>.decide.<type>.<worker>.
func (ns Namespace) DecideSticky(typ, worker string) string {
	return ns.start("decide.") + Token(typ) + "." + Token(worker)
}

// DecideAlive is where a worker that is asked for a type listens as long as it is at work:
// drover.<ns>.decide.<type>.alive-<worker>. What comes there means nothing; the server tells
// whoever asks when nobody listens any more.
func (ns Namespace) DecideAlive(typ, worker string) string {
	return ns.DecideSticky(typ, "alive-"+worker)
}

// Announce is where a decider worker says that it serves a type: drover.<ns>.announce.<type>.
func (ns Namespace) Announce(typ string) string { return ns.start("announce.") + Token(typ) }

// In is an inbox subject: drover.<ns>.in.<p>.<wid>.<kind>.
func (ns Namespace) In(p int, wid, kind string) string {
	return ns.part("in", p) + "." + Token(wid) + "." + Token(kind)
}

// ActOutcome is where a worker of a list reports to the inbox: drover.<ns>.in.<p>.<wid>.act.<list>.
func (ns Namespace) ActOutcome(p int, wid, list string) string {
	return ns.part("in", p) + "." + Token(wid) + ".act." + list
}

// History is the one subject of a run's records: drover.<ns>.history.<p>.<wid>.<run>.
func (ns Namespace) History(p int, wid, run string) string {
	return ns.part("history", p) + "." + Token(wid) + "." + Token(run)
}

// HistoryOfWorkflow matches all runs of a workflow id: drover.<ns>.history.<p>.<wid>.*. It is for
// reading only: an expected sequence on a wildcard lets stale writes through on replicated streams.
func (ns Namespace) HistoryOfWorkflow(p int, wid string) string {
	return ns.part("history", p) + "." + Token(wid) + ".*"
}

// Fence is the subject of a partition's fence records: drover.<ns>.history.<p>.fence. It has one
// token less than a run's subject, so no workflow id can meet it.
func (ns Namespace) Fence(p int) string { return ns.part("history", p) + ".fence" }

// Alarm is the one alarm of a run: drover.<ns>.alarm.<p>.<wid>.<run>.
func (ns Namespace) Alarm(p int, wid, run string) string {
	return ns.part("alarm", p) + "." + Token(wid) + "." + Token(run)
}

// Task is where activity tasks of a list and priority are put: drover.<ns>.task.<list>.<priority>.
// There are three priorities on the wire, above, at and below the ordinary one of 0: 1, 0 and -1.
// Each has a consumer of its own, see [Consumers]; consumers can be told single subjects, and no
// ranges.
func (ns Namespace) Task(list string, priority int) string {
	return ns.start("task.") + list + "." + strconv.Itoa(cmp.Compare(priority, 0))
}

// Beat is where a worker heartbeats: drover.<ns>.beat.<p>.<wid>.<list>.
func (ns Namespace) Beat(p int, wid, list string) string {
	return ns.part("beat", p) + "." + Token(wid) + "." + list
}

// Outcome is where a worker of a list gives an outcome, or a first question, to the owner of the
// workflow: drover.<ns>.outcome.<p>.<wid>.<list>.
func (ns Namespace) Outcome(p int, wid, list string) string {
	return ns.part("outcome", p) + "." + Token(wid) + "." + list
}

// Offer is where idle workers of a list are offered a task: drover.<ns>.offer.<list>.
func (ns Namespace) Offer(list string) string { return ns.start("offer.") + list }

// Fire is where the owner of a partition is told of alarms that are due: drover.<ns>.ring.<p>.
func (ns Namespace) Fire(p int) string { return ns.part("ring", p) }

// Purged is where the janitor tells which runs of a partition it has purged:
// drover.<ns>.purged.<p>.
func (ns Namespace) Purged(p int) string { return ns.part("purged", p) }

// Owner is where the owner of a partition is asked: drover.<ns>.owner.<p>.
func (ns Namespace) Owner(p int) string { return ns.part("owner", p) }

// Owned is where a broker says that it serves a partition whose owner has died, or was cut off:
// drover.<ns>.owned.<p>. The message is empty. Whoever waits for an answer asks again: the owner
// before had perhaps got the request.
func (ns Namespace) Owned(p int) string { return ns.part("owned", p) }

// Control is where one node is told something at once: drover.<ns>.control.<node>.
func (ns Namespace) Control(node string) string { return ns.start("control.") + Token(node) }

// Operation is where an operation is noted: drover.<ns>.operation.<kind>.
func (ns Namespace) Operation(kind string) string { return ns.start("operation.") + Token(kind) }

// NoticeRecycle is where recycles are announced: drover.<ns>.notice.recycle. Anyone may subscribe.
func (ns Namespace) NoticeRecycle() string { return ns.start("notice.recycle") }

// Event is reserved for a live feed of events, which nobody publishes yet:
// drover.<ns>.event.<EventType>.<type>.<wid>.
func (ns Namespace) Event(eventType, typ, wid string) string {
	return ns.start("event.") + Token(eventType) + "." + Token(typ) + "." + Token(wid)
}

// Dead is where a message goes that could not be applied: drover.<ns>.dead.<reason>[.<rest>…].
func (ns Namespace) Dead(reason string, rest ...string) string {
	var b strings.Builder
	b.WriteString(ns.start("dead."))
	b.WriteString(Token(reason))
	for _, r := range rest {
		b.WriteByte('.')
		b.WriteString(Token(r))
	}
	return b.String()
}
