package codec

import (
	"encoding/json"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
)

// What follows is how events and decisions are written and read by the libraries, as parts of
// messages without a plan.

type eventJSON struct {
	ID         int64           `json:"id"`
	Type       string          `json:"type"`
	Time       json.RawMessage `json:"time"`
	Attributes json.RawMessage `json:"attributes"`
}

// EventJSON is the JSON of an event.
func (c *Codec) EventJSON(e Event) ([]byte, error) {
	attrs, err := json.Marshal(e.Attributes)
	if err != nil {
		return nil, err
	}
	return json.Marshal(eventJSON{
		ID: e.ID, Type: e.Type, Time: c.events.time.Append(nil, e.Time), Attributes: attrs,
	})
}

// ReadEventJSON reads the JSON of an event. The attributes of an unknown one are a bin that holds
// their JSON.
func (c *Codec) ReadEventJSON(b []byte) (e Event, err error) {
	var w eventJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return e, Located(b, w, err)
	}
	e = Event{ID: w.ID, Type: w.Type}
	if len(w.Time) > 0 {
		if e.Time, err = c.events.time.Read(w.Time); err != nil {
			return e, &misplaced{at: "time", err: err}
		}
	}
	create, known := c.events.types[w.Type]
	if e.Unknown = !known; e.Unknown {
		if len(w.Attributes) > 0 {
			e.Raw, err = msgpack.Marshal([]byte(w.Attributes))
		}
	} else {
		e.Attributes = create()
		if len(w.Attributes) > 0 {
			if err = json.Unmarshal(w.Attributes, e.Attributes); err != nil {
				err = Located(w.Attributes, e.Attributes, err)
			}
		}
	}
	if err != nil {
		return e, fmt.Errorf("event %d %s: %w", w.ID, w.Type, err)
	}
	return e, nil
}

// EncodeEvent writes an event.
func (c *Codec) EncodeEvent(enc *msgpack.Encoder, e Event) error {
	if err := enc.EncodeArrayLen(4); err != nil {
		return err
	}
	if err := enc.EncodeInt(e.ID); err != nil {
		return err
	}
	if err := enc.EncodeString(e.Type); err != nil {
		return err
	}
	if err := enc.EncodeInt(e.Time); err != nil {
		return err
	}
	switch {
	case !e.Unknown:
		return enc.Encode(e.Attributes)
	case len(e.Raw) == 0:
		return enc.EncodeNil()
	}
	if err := CheckRaw(e.Type, e.Raw); err != nil {
		return err
	}
	return enc.Encode(msgpack.RawMessage(e.Raw))
}

// DecodeEvent reads an event.
func (c *Codec) DecodeEvent(dec *msgpack.Decoder) (e Event, err error) {
	n, err := dec.DecodeArrayLen()
	if err != nil {
		return e, err
	}
	if n < 4 {
		return e, fmt.Errorf("event: %d fields, want 4", n)
	}
	if e.ID, err = dec.DecodeInt64(); err != nil {
		return e, err
	}
	if e.Type, err = dec.DecodeString(); err != nil {
		return e, err
	}
	if e.Time, err = dec.DecodeInt64(); err != nil {
		return e, err
	}
	create, known := c.events.types[e.Type]
	if e.Unknown = !known; e.Unknown {
		if e.Raw, err = dec.DecodeRaw(); err != nil {
			return e, err
		}
	} else {
		e.Attributes = create()
		if err := dec.Decode(e.Attributes); err != nil {
			return e, fmt.Errorf("event %d %s: %w", e.ID, e.Type, err)
		}
	}
	for range n - 4 {
		if err := dec.Skip(); err != nil {
			return e, err
		}
	}
	return e, nil
}

// DecisionJSON is the JSON of a decision.
func (c *Codec) DecisionJSON(d Decision) ([]byte, error) {
	attrs, err := json.Marshal(d.Attributes)
	if err != nil {
		return nil, err
	}
	return json.Marshal(decisionJSON{Type: d.Type, Attributes: attrs})
}

// ReadDecisionJSON reads the JSON of a decision.
func (c *Codec) ReadDecisionJSON(b []byte) (d Decision, err error) {
	var w decisionJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return d, Located(b, w, err)
	}
	d.Type = w.Type
	create, known := c.decisions.types[w.Type]
	if !known {
		return d, nil
	}
	d.Attributes = create()
	if len(w.Attributes) == 0 {
		return d, nil
	}
	if err := json.Unmarshal(w.Attributes, d.Attributes); err != nil {
		return d, fmt.Errorf("decision %s: %w", w.Type, Located(w.Attributes, d.Attributes, err))
	}
	return d, nil
}

// EncodeDecision writes a decision.
func (c *Codec) EncodeDecision(enc *msgpack.Encoder, d Decision) error {
	if err := enc.EncodeMapLen(2); err != nil {
		return err
	}
	if err := enc.EncodeString("type"); err != nil {
		return err
	}
	if err := enc.EncodeString(d.Type); err != nil {
		return err
	}
	if err := enc.EncodeString("attributes"); err != nil {
		return err
	}
	return enc.Encode(d.Attributes)
}

// DecodeDecision reads a decision. The keys may come in any order.
func (c *Codec) DecodeDecision(dec *msgpack.Decoder) (d Decision, err error) {
	n, err := dec.DecodeMapLen()
	if err != nil {
		return d, err
	}
	var raw msgpack.RawMessage
	for range n {
		key, err := dec.DecodeString()
		if err != nil {
			return d, err
		}
		switch key {
		case "type":
			d.Type, err = dec.DecodeString()
		case "attributes":
			raw, err = dec.DecodeRaw()
		default:
			err = dec.Skip()
		}
		if err != nil {
			return d, err
		}
	}
	create, known := c.decisions.types[d.Type]
	if !known {
		return d, nil
	}
	d.Attributes = create()
	if len(raw) == 0 {
		return d, nil
	}
	if err := ByLibrary(raw, d.Attributes); err != nil {
		return d, fmt.Errorf("decision %s: %w", d.Type, err)
	}
	return d, nil
}
