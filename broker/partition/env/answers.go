package env

import (
	"errors"

	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// Respond encodes an answer as the requester wants it.
func (e *Env) Respond(to, content string, v any) {
	e.Options.Stats.Answered(to, v)
	if !subject.Answerable(to) {
		return
	}
	encode := schemas.MarshalJSON
	if content == schemas.ContentTypeMsgpack {
		encode = schemas.Marshal
	}
	body, err := encode(v)
	for err == nil && len(body) > e.Largest() {
		if page, ok := v.(*schemas.HistoryResponse); ok && len(page.Events) > 1 {
			v = half(page)
			body, err = encode(v)
			continue
		}
		body, err = encode(&schemas.AckResponse{
			V: schemas.Version,
			Error: schemas.Errorf(schemas.CodeTooLarge,
				"the answer of %d bytes exceeds the server's max_payload", len(body)).
				WithHint("ask for less: a page with a limit, or msgpack; or raise the " +
					"server's max_payload, above all if that was larger before"),
		})
		break
	}
	if err == nil {
		err = e.Conn.Publish(to, nil, body)
	}
	if err != nil {
		e.Options.Logger.WithError(err).Warn("a request cannot be answered")
	}
}

// RefuseTo answers a request with a refusal.
func (e *Env) RefuseTo(reply, content string, refused *schemas.Error) {
	e.Respond(reply, content, &schemas.AckResponse{V: schemas.Version, Error: refused})
}

// half is the first half of a page: its events take more room in their encoding than was foreseen.
func half(page *schemas.HistoryResponse) *schemas.HistoryResponse {
	return &schemas.HistoryResponse{
		V: page.V, Run: page.Run, Events: page.Events[:len(page.Events)/2], More: true,
		Soft: page.Soft,
	}
}

// Unavailable is the refusal of what needs a history that cannot be read: now, or at all.
func Unavailable(err error) *schemas.Error {
	if errors.Is(err, runs.ErrDamaged) {
		return DamageOf(err, "the history cannot be read: %v", err)
	}
	return schemas.Errorf(schemas.CodeUnavailable, "the history cannot be read now: %v", err).
		WithHint("try again")
}

// DamageOf is a refusal that says what can be done about a history that cannot be followed.
func DamageOf(err error, format string, args ...any) *schemas.Error {
	hint := "keep a copy of the store, see what drover verify says, and restore the history, " +
		"then: drover repair; or start the work under another id"
	if errors.Is(err, runs.ErrLater) {
		hint = "update this server if a later version has been at work; else " + hint
	}
	return schemas.Errorf(schemas.CodeInternal, format, args...).WithHint("%s", hint)
}
