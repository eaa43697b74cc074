package schemas

import (
	"github.com/droverhq/drover/schemas/codec"
)

// vocabulary encodes and decodes all messages.
var vocabulary = codec.New(codec.Words{
	// The messages of every workflow.
	Messages: []any{
		Record{},
		Checkpoint{},
		Alarm{},
		Ring{},
		Rings{},
		Report{},
		OutcomeAnswer{},
		ActivityTask{},
		DecisionTask{},
		DecisionReply{},
		StartRequest{},
		StartResponse{},
		ExecutionRequest{},
		ResultResponse{},
		SignalRequest{},
		SignalResponse{},
		HistoryRequest{},
		HistoryResponse{},
		ChildReport{},
		ExternalSignal{},
		ExternalAnswer{},
		Heartbeat{},
		BeatAnswer{},
	},
	Units: []*codec.Unit{payloadUnit, durationUnit, timeUnit},
	Events: codec.EventsOf(
		makers(types, func(t typeInfo) func() Attributes { return t.make }),
		eventTime,
		codedEvent,
		eventOf,
	),
	Decisions: codec.DecisionsOf(
		makers(
			decisions,
			func(create func() DecisionAttributes) func() DecisionAttributes { return create },
		),
		codedDecision,
		decisionOf,
	),
	Record: codec.RecordOf(
		func(r *Record) (id, time int64) { return r.First, int64(r.Inbox.Time) },
		(*Record).settle,
	),
	Names:      words[:],
	EventTypes: texts(eventWords[:]),
})

// The units have forms of their own in JSON. A time may be null; a payload of an owned body may be
// part of it.
var (
	payloadUnit = codec.UnitOf(
		func(b []byte, p Payload) ([]byte, error) { return p.appendJSON(b) },
		func(raw []byte, owned bool, p *Payload) error { return p.readJSON(raw, owned) },
	)
	durationUnit = codec.UnitOf(
		func(b []byte, d Duration) ([]byte, error) { return d.appendJSON(b), nil },
		func(raw []byte, _ bool, d *Duration) error { return d.UnmarshalJSON(raw) },
	)
	timeUnit = codec.UnitOf(
		func(b []byte, ts Timestamp) ([]byte, error) { return ts.appendJSON(b), nil },
		func(raw []byte, _ bool, ts *Timestamp) error { return ts.UnmarshalJSON(raw) },
	)
	eventTime = codec.Time{
		Append: func(b []byte, t int64) []byte { return Timestamp(t).appendJSON(b) },
		Read: func(raw []byte) (int64, error) {
			var ts Timestamp
			err := ts.UnmarshalJSON(raw)
			return int64(ts), err
		},
	}
)

// makers are what makes the attributes of each type of a table.
func makers[K ~string, V any, A any](table map[K]V, maker func(V) func() A) map[string]func() any {
	all := make(map[string]func() any, len(table))
	for name, v := range table {
		create := maker(v)
		all[string(name)] = func() any { return create() }
	}
	return all
}

func texts(types []EventType) []string {
	all := make([]string, len(types))
	for i, t := range types {
		all[i] = string(t)
	}
	return all
}

func codedEvent(e *Event) codec.Event {
	coded := codec.Event{
		ID: e.ID, Type: string(e.Type()), Time: int64(e.Time), Attributes: e.Attributes,
	}
	if u, ok := e.Attributes.(*Unknown); ok {
		coded.Unknown, coded.Raw = true, u.Raw
	}
	return coded
}

func eventOf(coded codec.Event) Event {
	e := Event{ID: coded.ID, Time: Timestamp(coded.Time)}
	if coded.Unknown {
		e.Attributes = &Unknown{Type: EventType(coded.Type), Raw: coded.Raw}
	} else {
		e.Attributes, _ = coded.Attributes.(Attributes)
	}
	return e
}

func codedDecision(d *Decision) codec.Decision {
	return codec.Decision{Type: string(d.Type()), Attributes: d.Attributes}
}

func decisionOf(coded codec.Decision) Decision {
	if a, ok := coded.Attributes.(DecisionAttributes); ok {
		return Decide(a)
	}
	return Decide(&UnknownDecision{Type: DecisionType(coded.Type)})
}

// settle turns the ids and times of the events of a compact record, which are differences, into
// what they are.
func (r *Record) settle() {
	at := r.Inbox.Time
	for i := range r.Events {
		e := &r.Events[i]
		at += e.Time
		e.ID, e.Time = r.First+int64(i)+e.ID, at
	}
}
