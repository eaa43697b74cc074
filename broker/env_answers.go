package broker

import (
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// respond encodes an answer as the requester wants it.
func (b *env) respond(to, content string, v any) {
	if !subject.Answerable(to) {
		return
	}
	encode := schemas.MarshalJSON
	if content == schemas.ContentTypeMsgpack {
		encode = schemas.Marshal
	}
	body, err := encode(v)
	for err == nil && len(body) > b.largest() {
		if page, ok := v.(*schemas.HistoryResponse); ok && len(page.Events) > 1 {
			v = half(page)
			body, err = encode(v)
			continue
		}
		body, err = encode(
			&schemas.AckResponse{
				V: schemas.Version,
				Error: schemas.Errorf(schemas.CodeTooLarge,
					"the answer of %d bytes exceeds the server's max_payload", len(body)).
					WithHint("ask for less: a page with a limit, or msgpack; or raise the " +
						"server's max_payload, above all if that was larger before"),
			},
		)
		break
	}
	if err == nil {
		err = b.conn.Publish(to, nil, body)
	}
	if err != nil {
		b.o.Logger.WithError(err).Warn("a request cannot be answered")
	}
}

func (b *env) refuseTo(reply, content string, e *schemas.Error) {
	b.respond(reply, content, &schemas.AckResponse{V: schemas.Version, Error: e})
}
