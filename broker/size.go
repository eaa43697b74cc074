package broker

import (
	"fmt"
	"reflect"

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

// recordRoom is for what stands in a record beside its events, and in the first one of a run beside its start.
const recordRoom = 4 << 10

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
	next := &schemas.StartRequest{
		WorkflowID: s.WorkflowID, Input: a.Input, Attributes: s.Attributes, Identity: s.Start.Identity, TagList: a.TagList, Origin: s.Heritage(),
	}
	if next.TagList == nil {
		next.TagList = s.Start.TagList
	}
	size := firstRecord(next)
	if o := next.Origin; 2*len(a.Input) > p.b.recordLimit { // what is remembered shall not give way to data, which can be a reference
		size += sizeOfIDs(o.SignalIDs) + sizeOfIDs(o.RequestIDs)
	}
	for _, d := range reply.Decisions {
		if set, ok := d.Attributes.(*schemas.SetAttributes); ok {
			size += 2 * schemas.AttributesSize(set.Attributes)
		}
	}
	if size <= p.b.recordLimit {
		return ""
	}
	return fmt.Sprintf("decision %d, input: it has %d bytes, and beside it the next run begins with %d of its chain, such as ids of requests and attributes: "+
		"no record has more than %d: pass a reference instead of data", last+1, len(a.Input), size-len(a.Input), p.b.recordLimit)
}

// firstRecord is what the first record of a continued run takes, but for the ids of requests that it remembers, of which the oldest are left out
// where they do not fit. It is 0 if the start cannot be encoded, which the record would say as well.
func firstRecord(q *schemas.StartRequest) int {
	bare, origin := *q, *q.Origin
	origin.SignalIDs, origin.RequestIDs, bare.Origin = nil, nil, &origin
	b, err := schemas.Marshal(&bare)
	if err != nil {
		return 0
	}
	return len(b) + recordRoom
}

// mostSaid is what an event may say beside the decision that it stems from: the words of a refusal, with ids in quotes.
const mostSaid = 2 << 10

// tooLargeEvents says why what a reply decides fits no record, "" if it does. Events may say more than the decisions: refusals have words, and
// activities the retry policies of their types. Where that could be too much it is tried on a copy of the state.
func (p *partition) tooLargeEvents(s *execution.State, reply *schemas.DecisionReply, at schemas.Timestamp, size int) string {
	config := p.b.config()
	for _, d := range reply.Decisions {
		size += mostSaid
		if a, ok := d.Attributes.(*schemas.ScheduleActivity); ok && a.Retry == nil {
			if t, _ := config.Types.Activity(a.ActivityType, a.ActivityTypeVersion); t != nil && t.Activity != nil {
				size += contentSize(reflect.ValueOf(t.Activity.Retry))
			}
		}
	}
	if size <= p.b.recordLimit {
		return ""
	}
	b, err := s.Snapshot()
	if err != nil {
		return "" // the record would say so as well
	}
	try, err := execution.Restore(b)
	if err != nil {
		return ""
	}
	events, _ := try.Step(config, execution.Reply{Reply: reply}, at)
	body, err := schemas.Marshal(&schemas.Record{WorkflowID: s.WorkflowID, Run: s.Run, Events: events})
	if err != nil || len(body)+recordRoom <= p.b.recordLimit {
		return ""
	}
	return fmt.Sprintf("the %d events of its %d decisions take %d bytes, and no record has more than %d: decide in several steps",
		len(events), len(reply.Decisions), len(body), p.b.recordLimit)
}

// sizeOf estimates the encoded size of an event, payloads above all. What there is most of is told without looking at each field.
func sizeOf(e schemas.Event) int {
	const frame = 300
	switch a := e.Attributes.(type) {
	case *schemas.DeciderScheduled, *schemas.DeciderStarted, *schemas.ActivityStarted, *schemas.TimerExpired:
		return frame
	case *schemas.WorkflowStarted:
		if a.Attributes == nil && a.TagList == nil && a.SignalIDs == nil && a.RequestIDs == nil && a.Locks == nil && a.ActivityDefaults == nil {
			return frame + 4*len(a.Input)/3
		}
	case *schemas.Signal:
		return frame + 4*len(a.Input)/3
	case *schemas.ActivityScheduled:
		if a.Retry == nil {
			return frame + 4*(len(a.Input)+len(a.Control))/3
		}
	case *schemas.ActivitySuccess:
		return frame + 4*len(a.Result)/3
	case *schemas.ActivityFailed:
		return frame + 4*len(a.Details)/3 + len(a.Reason)
	case *schemas.Marker:
		return frame + 4*len(a.Details)/3
	case *schemas.DeciderCompleted:
		return frame + 4*len(a.ExecutionContext)/3
	case *schemas.TimerScheduled:
		return frame + 4*len(a.Control)/3
	}
	return frame + contentSize(reflect.ValueOf(e.Attributes))
}

// contentSize adds up texts, bytes, which stand in base64 in JSON, and what is around those of which there may be many.
func contentSize(v reflect.Value) (size int) {
	const quotes, names = 4, 200
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer:
		if !v.IsNil() {
			return contentSize(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			size += contentSize(v.Field(i))
		}
	case reflect.Slice:
		switch v.Type().Elem().Kind() {
		case reflect.Uint8:
			return 4 * v.Len() / 3
		case reflect.Struct:
			size = names * v.Len()
		}
		for i := range v.Len() {
			size += quotes + contentSize(v.Index(i))
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			size += 2*quotes + contentSize(each.Key()) + contentSize(each.Value())
		}
	}
	return size
}

// sizeOfAll is [sizeOf] of several.
func sizeOfAll(events []schemas.Event) (size int) {
	for _, e := range events {
		size += sizeOf(e)
	}
	return size
}

// sizeOfIDs is what a list of ids takes.
func sizeOfIDs(ids []string) (size int) {
	for _, id := range ids {
		size += len(id) + 3
	}
	return size
}

// latestIDs are the latest of a list that fit into some room, and what is left of that.
func latestIDs(ids []string, room int) ([]string, int) {
	for i := len(ids) - 1; i >= 0; i-- {
		left := room - len(ids[i]) - 3
		if left < 0 {
			return ids[i+1:], room
		}
		room = left
	}
	return ids, room
}
