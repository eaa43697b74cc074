package env

import (
	"errors"

	"github.com/nats-io/nats.go/micro"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// DecodeSent is [runs.Decode] of what others have sent, see [natsconn.Decode].
func DecodeSent(h natsconn.Header, body []byte, v any) error {
	if len(body) > runs.MostOwned || natsconn.Lenient(h) {
		return natsconn.Decode(h, body, v)
	}
	return schemas.UnmarshalStrictOwned(body, v)
}

// DecodeRequest decodes a request to the API.
func DecodeRequest(r micro.Request, v any) error {
	return natsconn.Decode(natsconn.Header(r.Headers()), r.Data(), v)
}

// Undecodable tells of an error that a body is at fault, so that it will be the same at the next
// reading.
func Undecodable(err error) bool {
	return errors.Is(err, schemas.ErrVersion) || errors.Is(err, schemas.ErrMalformed) ||
		errors.Is(err, schemas.ErrEmpty)
}

// Invalid is the refusal of a request that cannot be decoded; it names the field, if one is at fault.
func Invalid(err error) *schemas.Error {
	refused := schemas.Errorf(schemas.CodeInvalid, "the request cannot be decoded: %v", err)
	if field := schemas.Place(err); field != "" {
		if errors.Is(err, schemas.ErrUnknownField) {
			refused = refused.WithHint(
				"mend the name, or send the header %s: 1 to have such fields passed over",
				schemas.LenientHeader)
		}
		return refused.InField(field)
	}
	return refused.WithHint("send one JSON object, or msgpack with its version byte")
}
