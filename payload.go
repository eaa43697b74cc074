package drover

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/droverhq/drover/schemas"
)

var errEncode = errors.New("cannot be encoded")

// encode turns what a user hands over into a payload: bytes as they are, everything else as JSON, nil as nothing.
func encode(field string, v any) (schemas.Payload, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case schemas.Payload:
		return v, nil
	case []byte:
		return v, nil
	case json.RawMessage:
		return schemas.Payload(v), nil
	}
	p, err := schemas.JSONPayload(v)
	if err != nil {
		return nil, fmt.Errorf("%s %w: %w", field, errEncode, err)
	}
	return p, nil
}

// decode is the other way: pointers to bytes take them as they are, nil takes nothing.
func decode(p schemas.Payload, out any) error {
	switch out := out.(type) {
	case nil:
		return nil
	case *schemas.Payload:
		*out = p
		return nil
	case *[]byte:
		*out = p
		return nil
	case *json.RawMessage:
		*out = json.RawMessage(p)
		return nil
	}
	return p.Decode(out)
}
