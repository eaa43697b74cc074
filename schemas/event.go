package schemas

import (
	"encoding/json"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/droverhq/drover/schemas/codec"
)

// Event is one line of a history. IDs are 1, 2, 3 … without gap; times never run backwards.
//
// In JSON it is {"id":1,"type":"WorkflowStarted","time":"…","attributes":{…}}, in msgpack the array
// [id, type, time, attributes].
type Event struct {
	ID         int64
	Time       Timestamp
	Attributes Attributes
}

// Attributes are what an event says; the type of the value is the type of the event.
type Attributes interface{ EventType() EventType }

// Type returns the event's type.
func (e Event) Type() EventType {
	if e.Attributes == nil {
		return ""
	}
	return e.Attributes.EventType()
}

// Unknown holds an event of a type that this version does not know: kept as it came, never interpreted.
//
// Raw is one msgpack value: the attributes of a msgpack body as they stood there, those of a JSON body as a bin that
// holds their text. The two encodings write times, durations and payloads differently, so that without the type neither
// can be turned into the other.
type Unknown struct {
	Type EventType
	Raw  msgpack.RawMessage
}

// EventType implements [Attributes].
func (u *Unknown) EventType() EventType { return u.Type }

// MarshalJSON shows the attributes as far as they can be read, and those that came as JSON as they came.
func (u *Unknown) MarshalJSON() ([]byte, error) {
	var v any
	if len(u.Raw) == 0 {
		return []byte("null"), nil
	}
	if Scan(u.Raw) == nil && codec.ByLibrary(u.Raw, &v) == nil {
		if text, ok := v.([]byte); ok && json.Valid(text) {
			return text, nil
		}
		if b, err := json.Marshal(readable(v)); err == nil {
			return b, nil
		}
	}
	return json.Marshal(map[string][]byte{payloadBytes: u.Raw})
}

// encode writes Raw as it is. What is no single value would shift all that follows it in the body.
func (u *Unknown) encode(enc *msgpack.Encoder) error {
	if len(u.Raw) == 0 {
		return enc.EncodeNil()
	}
	if err := codec.CheckRaw(string(u.Type), u.Raw); err != nil {
		return err
	}
	return enc.Encode(u.Raw)
}

// readable shows the bytes in v as payloads. Scan has bounded its depth.
func readable(v any) any {
	switch v := v.(type) {
	case []byte:
		return Payload(v)
	case []any:
		for i := range v {
			v[i] = readable(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = readable(v[k])
		}
	}
	return v
}

type eventJSON struct {
	ID         int64           `json:"id"`
	Type       EventType       `json:"type"`
	Time       Timestamp       `json:"time"`
	Attributes json.RawMessage `json:"attributes"`
}

// MarshalJSON implements [json.Marshaler].
func (e Event) MarshalJSON() ([]byte, error) {
	attrs, err := json.Marshal(e.Attributes)
	if err != nil {
		return nil, err
	}
	return json.Marshal(eventJSON{ID: e.ID, Type: e.Type(), Time: e.Time, Attributes: attrs})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (e *Event) UnmarshalJSON(b []byte) error {
	var w eventJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return codec.Located(b, w, err)
	}
	attrs := newAttributes(w.Type)
	if attrs == nil {
		u := &Unknown{Type: w.Type}
		if len(w.Attributes) > 0 {
			raw, err := msgpack.Marshal([]byte(w.Attributes))
			if err != nil {
				return fmt.Errorf("event %d %s: %w", w.ID, w.Type, err)
			}
			u.Raw = raw
		}
		attrs = u
	} else if len(w.Attributes) > 0 {
		if err := json.Unmarshal(w.Attributes, attrs); err != nil {
			return fmt.Errorf("event %d %s: %w", w.ID, w.Type, codec.Located(w.Attributes, attrs, err))
		}
	}
	*e = Event{ID: w.ID, Time: w.Time, Attributes: attrs}
	return nil
}

// EncodeMsgpack implements [msgpack.CustomEncoder].
func (e Event) EncodeMsgpack(enc *msgpack.Encoder) error {
	if err := enc.EncodeArrayLen(4); err != nil {
		return err
	}
	if err := enc.EncodeInt(e.ID); err != nil {
		return err
	}
	if err := enc.EncodeString(string(e.Type())); err != nil {
		return err
	}
	if err := enc.EncodeInt(int64(e.Time)); err != nil {
		return err
	}
	if u, ok := e.Attributes.(*Unknown); ok {
		return u.encode(enc)
	}
	return enc.Encode(e.Attributes)
}

// DecodeMsgpack implements [msgpack.CustomDecoder].
func (e *Event) DecodeMsgpack(dec *msgpack.Decoder) error {
	n, err := dec.DecodeArrayLen()
	if err != nil {
		return err
	}
	if n < 4 {
		return fmt.Errorf("event: %d fields, want 4", n)
	}
	if e.ID, err = dec.DecodeInt64(); err != nil {
		return err
	}
	typ, err := dec.DecodeString()
	if err != nil {
		return err
	}
	at, err := dec.DecodeInt64()
	if err != nil {
		return err
	}
	e.Time = Timestamp(at)
	attrs := newAttributes(EventType(typ))
	if attrs == nil {
		u := &Unknown{Type: EventType(typ)}
		if u.Raw, err = dec.DecodeRaw(); err != nil {
			return err
		}
		attrs = u
	} else if err := dec.Decode(attrs); err != nil {
		return fmt.Errorf("event %d %s: %w", e.ID, typ, err)
	}
	e.Attributes = attrs
	for range n - 4 {
		if err := dec.Skip(); err != nil {
			return err
		}
	}
	return nil
}
