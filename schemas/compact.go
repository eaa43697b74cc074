package schemas

import "fmt"

// versionCompact is the first byte of a compact record: msgpack as in any other body, but names of fields and types of events
// are numbers (see words), what is zero is left out, and of an event is written only what the record does not tell:
//
//	[type, time, attributes]      its id is first + its place
//	[type, time, attributes, id]  its id is first + its place + id
//
// The time is the difference to the event before it, that of the first to the inbox position. No other message is
// written so: a record is kept for ever, and read by brokers alone.
const versionCompact = 2

// appendRecord appends a record's compact body.
func appendRecord(b []byte, r *Record) ([]byte, error) {
	e := encoder{b: append(b, versionCompact), compact: true, id: r.First, at: r.Inbox.Time}
	p, v := planned(r)
	if err := e.value(p, v); err != nil {
		return nil, fmt.Errorf("schemas: encode a record of run %s: %w", r.Run, err)
	}
	return e.b, nil
}

func (e *encoder) compactEvent(v *Event) error {
	id := v.ID - e.id
	n := byte(0x93)
	if id != 0 {
		n++
	}
	e.b = append(e.b, n)
	number := eventNumbers[v.Type()]
	if number > 0 {
		e.b = appendUint(e.b, uint64(number))
	} else {
		e.b = appendText(e.b, string(v.Type()))
	}
	e.b = appendInt(e.b, int64(v.Time-e.at))
	e.id++
	e.at = v.Time
	e.compact = number > 0
	err := e.attributes(v.Attributes)
	e.compact = true
	if id != 0 {
		e.b = appendInt(e.b, id)
	}
	return err
}

// compactEvent reads an event as it stands. Its id and time are differences until the whole record is read.
func (r *reader) compactEvent() (e Event) {
	n := r.arrayLen(1)
	if n < 3 {
		r.fail()
	}
	if r.bad || r.pos >= len(r.b) {
		r.fail()
		return e
	}
	typ := []byte(nil)
	if c := r.b[r.pos]; c < 0x80 {
		if n := int(r.uint()); n > 0 && n <= len(eventWords) {
			typ = []byte(eventWords[n-1])
		} else {
			r.fail() // the list is closed
		}
	} else {
		typ = r.text()
	}
	e.Time = Timestamp(r.int())
	e.Attributes = r.attributes(typ)
	if n > 3 {
		e.ID = r.int()
	}
	for ; n > 4 && !r.bad; n-- {
		r.skip()
	}
	return e
}

// decodeRecord reads what follows the version of a compact record.
func decodeRecord(b []byte, record *Record) error {
	if len(b) > MaxBody {
		return fmt.Errorf("%w: %d bytes exceed the limit of %d", ErrMalformed, len(b), MaxBody)
	}
	p, v := planned(record)
	r := reader{b: b, compact: true}
	r.value(p, v)
	switch {
	case r.bad:
		return fmt.Errorf("%w: no compact record, at byte %d", ErrMalformed, r.pos)
	case r.pos != len(b):
		return fmt.Errorf("%w: %d bytes follow the record", ErrMalformed, len(b)-r.pos)
	}
	at := record.Inbox.Time
	for i := range record.Events {
		e := &record.Events[i]
		at += e.Time
		e.ID, e.Time = record.First+int64(i)+e.ID, at
	}
	return nil
}
