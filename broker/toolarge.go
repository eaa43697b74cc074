package broker

import (
	"fmt"
	"reflect"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// What fits no message is refused while its sender can still be told: behind that a record that is too large would stop its partition, for
// nothing goes on without it.

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
