package broker

import (
	"errors"

	"github.com/nats-io/nats.go/micro"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// mostOwned is the longest body that what is decoded of it may point into, if some of that may stay for as long as its run is in memory: an
// activity that is open for days must not keep the context of the decision that scheduled it, which may be a thousand times its size.
const mostOwned = 4 << 10

// decode decodes a body that nobody else has and that is remembered, in part, as long as a run.
func decode(body []byte, v any) error {
	if len(body) > mostOwned {
		return schemas.Unmarshal(body, v)
	}
	return schemas.UnmarshalOwned(body, v)
}

// decodeSent is [decode] of what others have sent, see [natsconn.Decode].
func decodeSent(h natsconn.Header, body []byte, v any) error {
	if len(body) > mostOwned || natsconn.Lenient(h) {
		return natsconn.Decode(h, body, v)
	}
	return schemas.UnmarshalStrictOwned(body, v)
}

// requested decodes a request to the API.
func requested(r micro.Request, v any) error {
	return natsconn.Decode(natsconn.Header(r.Headers()), r.Data(), v)
}

// unreadable tells of an error that a body is at fault, so that it will be the same at the next reading.
func unreadable(err error) bool {
	return errors.Is(err, schemas.ErrVersion) || errors.Is(err, schemas.ErrMalformed) || errors.Is(err, schemas.ErrEmpty)
}
