package codec

import (
	"reflect"
	"unsafe"
)

// Words are what a codec knows of the vocabulary.
type Words struct {
	// Messages are structs that get a plan, those in them included. All others go by the libraries.
	Messages  []any
	Units     []*Unit
	Events    Events
	Decisions Decisions
	Record    Record
	// Names are the names of fields that a compact record writes as a number, and EventTypes the
	// types of events; the first is number 1.
	Names, EventTypes []string
}

// Codec encodes and decodes the messages of a vocabulary. It does not change, so all may use it at
// once.
type Codec struct {
	plans        map[uintptr]*plan // by the types of pointers to such values
	units        map[reflect.Type]*Unit
	events       Events
	decisions    Decisions
	record       Record
	wordNumbers  map[string]int
	eventNumbers map[string]int
	eventWords   []string
}

// New makes the codec of a vocabulary.
func New(w Words) *Codec {
	c := &Codec{
		plans: make(map[uintptr]*plan), units: make(map[reflect.Type]*Unit), events: w.Events,
		decisions: w.Decisions, record: w.Record, wordNumbers: numbers(w.Names),
		eventNumbers: numbers(w.EventTypes), eventWords: w.EventTypes,
	}
	for _, u := range w.Units {
		c.units[u.typ] = u
	}
	all := &planner{Codec: c, made: make(map[reflect.Type]*plan)}
	for _, v := range w.Messages {
		all.planOf(reflect.TypeOf(v))
	}
	for _, create := range w.Events.types {
		all.planOf(reflect.TypeOf(create()).Elem())
	}
	for _, create := range w.Decisions.types {
		all.planOf(reflect.TypeOf(create()).Elem())
	}
	for t, p := range all.made {
		c.plans[identity(reflect.PointerTo(t))] = p
	}
	return c
}

func numbers(all []string) map[string]int {
	m := make(map[string]int, len(all))
	for i, w := range all {
		m[w] = i + 1
	}
	return m
}

// Unit is a type of 64 bits or of bytes that has a form of its own in JSON; in msgpack it has none.
type Unit struct {
	typ        reflect.Type
	appendJSON func(b []byte, at unsafe.Pointer) ([]byte, error)
	readJSON   func(raw []byte, owned bool, at unsafe.Pointer) error
}

// UnitOf describes a unit by what appends its JSON to b, and what reads it. What is read of an
// owned body may point into it.
func UnitOf[T any](
	appendJSON func(b []byte, v T) ([]byte, error),
	readJSON func(raw []byte, owned bool, v *T) error,
) *Unit {
	return &Unit{
		typ: reflect.TypeFor[T](),
		appendJSON: func(b []byte, at unsafe.Pointer) ([]byte, error) {
			return appendJSON(b, *(*T)(at))
		},
		readJSON: func(raw []byte, owned bool, at unsafe.Pointer) error {
			return readJSON(raw, owned, (*T)(at))
		},
	}
}

// Event is what the codec sees of an event. In JSON it is
// {"id":1,"type":"WorkflowStarted","time":"…","attributes":{…}}, in msgpack [id, type, time,
// attributes].
type Event struct {
	ID         int64
	Type       string // of one that was read only if it is unknown; the attributes tell
	Time       int64
	Attributes any
	// Unknown says that no table has the type. Raw is then the attributes, one msgpack value or
	// none.
	Unknown bool
	Raw     []byte
}

// Decision is what the codec sees of a decision: {"type":"ScheduleActivity","attributes":{…}}.
type Decision struct {
	Type       string
	Attributes any // nil if no table has the type
}

// tagged are lists of values whose type says what is in them. T is how the codec sees one.
type tagged[T any] struct {
	slice reflect.Type
	types map[string]func() any // what makes the attributes of a type
	get   func(at unsafe.Pointer, i int) T
	make  func(at unsafe.Pointer, capacity int)
	add   func(at unsafe.Pointer, v T)
}

func listOf[E, T any](types map[string]func() any, get func(*E) T, set func(T) E) tagged[T] {
	return tagged[T]{
		slice: reflect.TypeFor[[]E](),
		types: types,
		get:   func(at unsafe.Pointer, i int) T { return get(&(*(*[]E)(at))[i]) },
		make:  func(at unsafe.Pointer, capacity int) { *(*[]E)(at) = make([]E, 0, capacity) },
		add:   func(at unsafe.Pointer, v T) { *(*[]E)(at) = append(*(*[]E)(at), set(v)) },
	}
}

// length is that of the slice at p, whatever its elements are.
func length(p unsafe.Pointer) int { return len(*(*[]struct{})(p)) }

// Events is the table of the types of events.
type Events struct {
	tagged[Event]
	time Time
}

// Time is how the time of an event is written in JSON.
type Time struct {
	Append func(b []byte, t int64) []byte
	Read   func(raw []byte) (t int64, err error)
}

// EventsOf makes the table for events that are stored as E. Types make the attributes.
func EventsOf[E any](
	types map[string]func() any, time Time, get func(*E) Event, set func(Event) E,
) Events {
	return Events{listOf(types, get, set), time}
}

// Decisions is the table of the types of decisions.
type Decisions struct{ tagged[Decision] }

// DecisionsOf makes the table for decisions that are stored as D.
func DecisionsOf[D any](
	types map[string]func() any, get func(*D) Decision, set func(Decision) D,
) Decisions {
	return Decisions{listOf(types, get, set)}
}

// Record is the message that has a compact form.
type Record struct {
	is     func(v any) bool
	origin func(v any) (id, time int64)
	settle func(v any)
}

// RecordOf describes the record R. Origin returns the id of its first event and the time from which
// that of the first event is counted. Settle turns the ids and times of its events, which are
// differences when they have been read, into what they are.
func RecordOf[R any](origin func(*R) (id, time int64), settle func(*R)) Record {
	return Record{
		is:     func(v any) bool { r, ok := v.(*R); return ok && r != nil },
		origin: func(v any) (id, time int64) { return origin(v.(*R)) },
		settle: func(v any) { settle(v.(*R)) },
	}
}
