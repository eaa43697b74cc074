package broker

import (
	"fmt"

	"github.com/droverhq/drover/schemas"
)

// inJSON estimates how much a payload takes in a message that is JSON, where bytes stand in base64.
func inJSON(p schemas.Payload) int { return 4 * len(p) / 3 }

// fits tells whether a context and one event fit a decision task in JSON.
func (p *partition) fits(context schemas.Payload, e schemas.Event) bool {
	if len(context) == 0 || inJSON(context)+sizeOf(e) <= p.b.recordLimit {
		return true
	}
	c, err := context.MarshalJSON()
	if err != nil {
		return true // then the task cannot be encoded either, and says why
	}
	b, err := e.MarshalJSON()
	return err != nil || len(c)+len(b) <= p.b.recordLimit
}

// tooLarge says which payload of a reply of some size could not be sent on, since the task or the request that carries it is JSON, "" if all can.
// A reply that is JSON itself has none.
func (p *partition) tooLarge(reply *schemas.DecisionReply, size int) string {
	limit := p.b.recordLimit
	if 4*size/3 <= limit {
		return ""
	}
	large := func(field string, v schemas.Payload) string {
		if inJSON(v) <= limit {
			return ""
		}
		b, err := v.MarshalJSON()
		if err == nil && len(b) <= limit {
			return ""
		}
		return fmt.Sprintf("%s: it takes %d bytes in JSON, and no message has more than %d: pass a reference instead of data", field, len(b), limit)
	}
	if s := large("context", reply.Context); s != "" {
		return s
	}
	for i, d := range reply.Decisions {
		var v schemas.Payload
		switch a := d.Attributes.(type) {
		case *schemas.ScheduleActivity:
			v = a.Input
		case *schemas.StartChild:
			v = a.Input
		case *schemas.ContinueAsNew:
			v = a.Input
		case *schemas.SignalExternal:
			v = a.Input
		}
		if s := large(fmt.Sprintf("decision %d, input", i+1), v); s != "" {
			return s
		}
	}
	return ""
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
