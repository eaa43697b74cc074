package large

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// What fits no message is refused while its sender can still be told: after that a record that is
// too large would stop its partition, for nothing goes on without it.

// tooLarge says why a reply of some size cannot be applied, "" if it can.
func (l *Large) tooLarge(
	s *execution.State, reply *schemas.DecisionReply, at schemas.Timestamp, size int,
) string {
	return cmp.Or(l.tooLargeInJSON(reply, size), l.tooLargeForRecords(s, reply, at, size))
}

// tooLargeInJSON says which payload of a reply of some size could not be sent on, since the task
// that carries it is JSON, "" if all can. There it takes more, up to six times as much: bytes stand
// in base64, and what is text with escapes.
func (l *Large) tooLargeInJSON(reply *schemas.DecisionReply, size int) string {
	if 6*size <= l.Env.BodyLimit() {
		return ""
	}
	large := func(field string, v schemas.Payload) string {
		n := l.Env.Outgrows(v)
		if n == 0 {
			return ""
		}
		return fmt.Sprintf(
			"%s: it takes %d bytes in JSON, and no message has more than %d: pass a reference instead of data",
			field,
			n,
			l.Env.BodyLimit(),
		)
	}
	if s := large("context", reply.Context); s != "" {
		return s
	}
	for i, d := range reply.Decisions {
		for _, v := range portions(d.Attributes) {
			if s := large(fmt.Sprintf("decision %d, %s", i+1, fieldName(d.Attributes, v)), *v); s != "" {
				return s
			}
		}
	}
	return ""
}

// fieldName is the name of a payload's field, as JSON has it.
func fieldName(attributes schemas.DecisionAttributes, v *schemas.Payload) string {
	of := reflect.ValueOf(attributes).Elem()
	for i := range of.NumField() {
		if of.Field(i).Addr().Interface() == any(v) {
			name, _, _ := strings.Cut(of.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return "payload"
}

const (
	// recordBudget is for what stands in a record beside its events, and in the first one of a run
	// beside its start.
	recordBudget = 4 << 10
	// mostSaid is what an event may say beside the decision that it stems from, and a lock beside
	// others: the words of a refusal, with ids of other runs in quotes. littleSaid are those of one
	// that names nothing but its decision, whose names may take five times as much there.
	mostSaid, littleSaid, quoted = 2 << 10, 600, 5
)

// tooLargeForRecords says why what a reply decides fits no record, or the next run cannot begin
// with what it continues with, "" if both can. Events may say more than the decisions: refusals
// have words, and activities the retry policies of their types. And the first record of a next run
// comes after the close, where nobody can refuse it any more. Only where that could be too much is
// it tried, on a copy of the state.
func (l *Large) tooLargeForRecords(
	s *execution.State, reply *schemas.DecisionReply, at schemas.Timestamp, size int,
) string {
	config, limit := l.Env.Config(), l.Env.BodyLimit()
	if most := size + l.mostSaid(s, reply, config); most <= limit {
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
	trial := *config
	trial.Happens = nil // nothing does
	events, _ := try.Step(&trial, execution.Reply{Reply: reply}, at)
	body, err := schemas.Marshal(
		&schemas.Record{WorkflowID: s.WorkflowID, Run: s.Run, Events: events})
	if err != nil {
		return ""
	}
	if len(body)+recordBudget > limit {
		return fmt.Sprintf(
			"the %d events of its %d decisions take %d bytes, and no record has more than %d: decide in several steps",
			len(events),
			len(reply.Decisions),
			len(body),
			limit,
		)
	}
	next := try.Continuation()
	if next == nil {
		return ""
	}
	first := FirstRecord(next)
	if 2*len(next.Input) > limit {
		// what is remembered shall not give way to data, which can be a reference
		first += schemas.WordsSize(next.Origin.SignalIDs) +
			schemas.WordsSize(next.Origin.RequestIDs)
	}
	if first <= limit {
		return ""
	}
	return fmt.Sprintf(
		"decision %d, input: it has %d bytes, and beside it the next run begins with %d of its "+
			"chain, such as ids of requests and attributes: "+
			"no record has more than %d: pass a reference instead of data", len(reply.Decisions),
		len(next.Input), first-len(next.Input), limit)
}

// mostSaid bounds what the events of a reply say beside it, and the first record of a next run.
func (l *Large) mostSaid(
	s *execution.State, reply *schemas.DecisionReply, config *execution.Config,
) (size int) {
	for _, d := range reply.Decisions {
		switch a := d.Attributes.(type) {
		case *schemas.ScheduleActivity:
			size += littleSaid + quoted*(len(a.ActivityID)+len(a.ActivityType)+len(a.ActivityTypeVersion)+len(a.List))
			if t, _ := config.Types.Activity(a.ActivityType, a.ActivityTypeVersion); a.Retry ==
				nil && t != nil && t.Activity != nil {
				size += runs.ContentSize(t.Activity.Retry)
			}
		case *schemas.ScheduleTimer:
			size += littleSaid + quoted*len(a.TimerID)
		case *schemas.ContinueAsNew:
			if len(a.Input) == 0 {
				size += len(s.Start.Input) // it stays
			}
			size += mostSaid + recordBudget + schemas.WordsSize(s.SignalIDs) +
				schemas.WordsSize(s.RequestIDs) + schemas.AttributesSize(s.Attributes) +
				schemas.WordsSize(s.Start.TagList) + mostSaid*len(s.OpenLocks())
		default:
			size += mostSaid
		}
	}
	return size
}

// FirstRecord is what the first record of a continued run takes, but for the ids of requests that
// it remembers, of which the oldest are left out where they do not fit. It is 0 if the start cannot
// be encoded, which the record would say as well.
func FirstRecord(q *schemas.StartRequest) int {
	bare, origin := *q, *q.Origin
	origin.SignalIDs, origin.RequestIDs, bare.Origin = nil, nil, &origin
	b, err := schemas.Marshal(&bare)
	if err != nil {
		return 0
	}
	return len(b) + recordBudget
}
