package schemas

import (
	"encoding/json"

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

// Unknown holds an event of a type that this version does not know: kept as it came, never
// interpreted.
//
// Raw is one msgpack value: the attributes of a msgpack body as they stood there, those of a JSON
// body as a bin that holds their text. The two encodings write times, durations and payloads
// differently, so that without the type neither can be turned into the other.
type Unknown struct {
	Type EventType
	Raw  msgpack.RawMessage
}

// EventType implements [Attributes].
func (u *Unknown) EventType() EventType { return u.Type }

// MarshalJSON shows the attributes as far as they can be read, and those that came as JSON as they
// came.
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

// MarshalJSON implements [json.Marshaler].
func (e Event) MarshalJSON() ([]byte, error) { return vocabulary.EventJSON(codedEvent(&e)) }

// UnmarshalJSON implements [json.Unmarshaler].
func (e *Event) UnmarshalJSON(b []byte) error {
	coded, err := vocabulary.ReadEventJSON(b)
	if err == nil {
		*e = eventOf(coded)
	}
	return err
}

// EncodeMsgpack implements [msgpack.CustomEncoder].
func (e Event) EncodeMsgpack(enc *msgpack.Encoder) error {
	return vocabulary.EncodeEvent(enc, codedEvent(&e))
}

// DecodeMsgpack implements [msgpack.CustomDecoder].
func (e *Event) DecodeMsgpack(dec *msgpack.Decoder) error {
	coded, err := vocabulary.DecodeEvent(dec)
	if err == nil {
		*e = eventOf(coded)
	}
	return err
}
