package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/droverhq/drover/schemas/codec"
)

// Payload is what users hand from one part of a workflow to another: any bytes.
//
// In msgpack it is the bytes as they are. In JSON a payload that is itself JSON stands as that
// value, other text as {"$text":"…"} and other bytes as {"$bytes":"<base64>"}. A JSON value that
// looks like one of those forms is wrapped in {"$json":…}, so that every payload survives the round
// trip: bytes and text exactly, JSON values up to white space and escapes, and the value null as
// the empty payload. JSON that nests too deep for a JSON body goes as text.
//
// A payload above [PayloadThreshold] is kept elsewhere and stands as a reference, in JSON
// {"$ref":{…}}; see [PayloadRef]. Fetch it before you look into it: [Payload.Ref] tells.
type Payload []byte

const (
	payloadText  = "$text"
	payloadBytes = "$bytes"
	payloadJSON  = "$json"
	payloadRef   = "$ref" // reserved only with an object as value: {"$ref":"#/a"} is a user's
)

// JSONPayload encodes v as JSON. It fails where encoding/json does.
func JSONPayload(v any) (Payload, error) {
	if s, ok := v.(string); ok && codec.Plain(s) {
		return append(append(append(make([]byte, 0, len(s)+2), '"'), s...), '"'), nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	return b, nil
}

// Text returns s as a payload.
func Text(s string) Payload { return Payload(s) }

// Decode decodes a JSON payload into v. An empty payload leaves v as it is; a reference is
// [ErrReference].
func (p Payload) Decode(v any) error {
	if len(p) == 0 {
		return nil
	}
	if r, ok := p.Ref(); ok {
		return fmt.Errorf("%w to %d bytes in object %s: fetch it before you decode it",
			ErrReference, r.Size, r.Object)
	}
	if s, ok := v.(*string); ok && s != nil && len(p) >= 2 && p[0] == '"' && p[len(p)-1] == '"' &&
		codec.Plain(p[1:len(p)-1]) {
		*s = string(p[1 : len(p)-1])
		return nil
	}
	if err := json.Unmarshal(p, v); err != nil {
		return fmt.Errorf("payload is not the expected JSON: %w", err)
	}
	return nil
}

// MarshalJSON implements [json.Marshaler].
func (p Payload) MarshalJSON() ([]byte, error) {
	switch {
	case len(p) == 0:
		return []byte("null"), nil
	case standsAsJSON(p):
		if _, _, ok := wrapped(p); ok {
			return json.Marshal(map[string]json.RawMessage{payloadJSON: json.RawMessage(p)})
		}
		return p, nil
	}
	if _, ok := p.Ref(); ok {
		return json.Marshal(
			map[string]json.RawMessage{payloadRef: json.RawMessage(p[len(refPrefix):])})
	}
	if utf8.Valid(p) {
		return json.Marshal(map[string]string{payloadText: string(p)})
	}
	return json.Marshal(map[string][]byte{payloadBytes: p})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *Payload) UnmarshalJSON(b []byte) error {
	if bytes.Equal(bytes.TrimSpace(b), []byte("null")) {
		*p = nil
		return nil
	}
	form, raw, ok := wrapped(b)
	if !ok {
		*p = bytes.Clone(b)
		return nil
	}
	switch form {
	case payloadText:
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return fmt.Errorf("payload %s: %w", form, err)
		}
		*p = Payload(s)
	case payloadBytes:
		var v []byte
		if err := json.Unmarshal(raw, &v); err != nil {
			return fmt.Errorf("payload %s: want base64: %w", form, err)
		}
		*p = v
	case payloadRef:
		v, err := decodeRef(raw)
		if err != nil {
			return err
		}
		*p = v
	default:
		*p = bytes.Clone(raw)
	}
	return nil
}

// appendJSON writes a payload without white space, and with "<", ">" and "&" escaped, as all that
// is embedded.
func (p Payload) appendJSON(to []byte) ([]byte, error) {
	b, err := p.MarshalJSON()
	if err != nil {
		return nil, err
	}
	for _, c := range b {
		if c <= ' ' || c == '<' || c == '>' || c == '&' || c == 0xe2 { // the last begins U+2028
			if b, err = json.Marshal(json.RawMessage(b)); err != nil {
				return nil, err
			}
			break
		}
	}
	return append(to, b...), nil
}

// readJSON is UnmarshalJSON of a body that p may keep if it is owned. Most payloads are JSON that
// stands as it is.
func (p *Payload) readJSON(raw []byte, owned bool) error {
	if owned && len(raw) > 0 && raw[0] != '{' && string(raw) != "null" {
		*p = slices.Clip(raw)
		return nil
	}
	return p.UnmarshalJSON(raw)
}

// standsAsJSON tells whether p can be part of a JSON body. encoding/json takes strings that are not
// UTF-8; other languages do not.
func standsAsJSON(p Payload) bool {
	return json.Valid(p) && utf8.Valid(p) &&
		(len(p) <= codec.MaxPayloadDepth || codec.JSONDepth(p) <= codec.MaxPayloadDepth)
}

// wrapped tells whether b is an object of exactly one of the reserved keys.
func wrapped(b []byte) (form string, raw json.RawMessage, ok bool) {
	b = bytes.TrimSpace(b)
	if len(b) < 2 || b[0] != '{' || !bytes.Contains(b, []byte(`"$`)) {
		return "", nil, false
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(b, &m) != nil || len(m) != 1 {
		return "", nil, false
	}
	for form, raw := range m {
		switch form {
		case payloadText, payloadBytes, payloadJSON:
			return form, raw, true
		case payloadRef:
			return form, raw, bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{"))
		}
	}
	return "", nil, false
}
