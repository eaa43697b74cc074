package broker

import (
	"fmt"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// tooLarge says which payload of a reply of some size could not be sent on, since the task that carries it is JSON, "" if all can. There it takes
// more, up to six times as much: bytes stand in base64, and what is text with escapes.
func (p *partition) tooLarge(reply *schemas.DecisionReply, size int) string {
	if 6*size <= p.b.recordLimit {
		return ""
	}
	large := func(field string, v schemas.Payload) string {
		n := p.b.outgrows(v)
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("%s: it takes %d bytes in JSON, and no message has more than %d: pass a reference instead of data", field, n, p.b.recordLimit)
	}
	if s := large("context", reply.Context); s != "" {
		return s
	}
	for i, d := range reply.Decisions {
		var v schemas.Payload
		switch a := d.Attributes.(type) {
		case *schemas.ScheduleActivity:
			v = a.Input
		case *schemas.ContinueAsNew:
			v = a.Input
		}
		if s := large(fmt.Sprintf("decision %d, input", i+1), v); s != "" {
			return s
		}
	}
	return ""
}

// outgrows tells how many bytes a payload takes in a message of JSON that has little else, 0 if such a message can be sent.
func (b *Broker) outgrows(v schemas.Payload) int {
	if 6*len(v) <= b.recordLimit {
		return 0
	}
	body, err := schemas.MarshalJSON(&schemas.Report{Result: v})
	if err != nil || len(body) <= b.recordLimit {
		return 0
	}
	return len(body)
}

// nextRoom is for what stands in the first record of a run beside its start.
const nextRoom = 4 << 10

// tooLargeNext says why the run that a reply wants to continue as could not begin, "" if it can. Its first record has the input beside what it
// knows of its chain, and that record comes behind the close: nobody can refuse it any more.
func (p *partition) tooLargeNext(s *execution.State, reply *schemas.DecisionReply) string {
	last := len(reply.Decisions) - 1
	if last < 0 {
		return ""
	}
	a, ok := reply.Decisions[last].Attributes.(*schemas.ContinueAsNew)
	if !ok {
		return ""
	}
	next := &schemas.StartRequest{WorkflowID: s.WorkflowID, Attributes: s.Attributes, Identity: s.Start.Identity, TagList: a.TagList, Origin: s.Heritage()}
	if next.TagList == nil {
		next.TagList = s.Start.TagList
	}
	b, err := schemas.Marshal(next)
	if err != nil {
		return "" // the record would say so as well
	}
	size := len(a.Input) + len(b) + nextRoom
	for _, d := range reply.Decisions {
		if set, ok := d.Attributes.(*schemas.SetAttributes); ok {
			size += 2 * schemas.AttributesSize(set.Attributes)
		}
	}
	if size <= p.b.recordLimit {
		return ""
	}
	return fmt.Sprintf("decision %d, input: it has %d bytes, and beside it the next run begins with %d of its chain, above all the request ids of signals: "+
		"no record has more than %d: pass a reference instead of data", last+1, len(a.Input), size-len(a.Input), p.b.recordLimit)
}

// sizeOf estimates the encoded size of an event, payloads above all.
func sizeOf(e schemas.Event) int {
	const frame = 300
	switch a := e.Attributes.(type) {
	case *schemas.WorkflowStarted:
		return frame + 4*len(a.Input)/3
	case *schemas.Signal:
		return frame + 4*len(a.Input)/3
	case *schemas.ActivityScheduled:
		return frame + 4*(len(a.Input)+len(a.Control))/3
	case *schemas.ActivitySuccess:
		return frame + 4*len(a.Result)/3
	case *schemas.ActivityFailed:
		return frame + 4*len(a.Details)/3 + len(a.Reason)
	case *schemas.Marker:
		return frame + 4*len(a.Details)/3
	case *schemas.DeciderCompleted:
		return frame + 4*len(a.ExecutionContext)/3
	case *schemas.DeciderFailed:
		return frame + len(a.Details) + len(a.Reason)
	case *schemas.ActivityTimedOut:
		return frame + 4*len(a.Details)/3
	case *schemas.ActivityCanceled:
		return frame + 4*len(a.Details)/3
	case *schemas.ActivityRetryScheduled:
		return frame + 4*(len(a.Details)+len(a.HeartbeatDetails))/3
	case *schemas.ActivityInterrupted:
		return frame + 4*len(a.HeartbeatDetails)/3
	}
	return frame + exchangeSize(e)
}

// sizeOfAll is [sizeOf] of several.
func sizeOfAll(events []schemas.Event) (size int) {
	for _, e := range events {
		size += sizeOf(e)
	}
	return size
}

// exchangeSize is what an event about another workflow carries.
func exchangeSize(e schemas.Event) int {
	switch a := e.Attributes.(type) {
	case *schemas.ChildScheduled:
		return 4 * (len(a.Input) + len(a.Control)) / 3
	case *schemas.ChildSuccess:
		return 4 * len(a.Result) / 3
	case *schemas.ChildFailed:
		return 4*len(a.Details)/3 + len(a.Reason)
	case *schemas.ChildCanceled:
		return 4 * len(a.Details) / 3
	case *schemas.SignalExternalScheduled:
		return 4 * (len(a.Input) + len(a.Control)) / 3
	case *schemas.TimerScheduled:
		return 4 * len(a.Control) / 3
	}
	return 0
}
