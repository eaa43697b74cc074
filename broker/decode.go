package broker

import (
	"errors"

	"github.com/nats-io/nats.go/micro"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// decodeSent is [runs.Decode] of what others have sent, see [natsconn.Decode].
func decodeSent(h natsconn.Header, body []byte, v any) error {
	if len(body) > runs.MostOwned || natsconn.Lenient(h) {
		return natsconn.Decode(h, body, v)
	}
	return schemas.UnmarshalStrictOwned(body, v)
}

// requested decodes a request to the API.
func requested(r micro.Request, v any) error {
	return natsconn.Decode(natsconn.Header(r.Headers()), r.Data(), v)
}

// unreadable tells of an error that a body is at fault, so that it will be the same at the next
// reading.
func unreadable(err error) bool {
	return errors.Is(err, schemas.ErrVersion) || errors.Is(err, schemas.ErrMalformed) ||
		errors.Is(err, schemas.ErrEmpty)
}
