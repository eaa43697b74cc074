package natsconn

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/micro"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// NATS lets every user name any subject for the answer, and the server publishes there by its own
// right: what a consumer delivers, what stands in a stream, an acknowledgement, and the rest of
// what its API says. None of it was published as a request by somebody who had the right to (E3,
// ADR 0066).

// headerStream names the stream of a message that the server gives out, other than by a consumer.
const headerStream = "Nats-Stream"

// Given says what a received message is if the NATS server has given it out, or has said it itself;
// "" if a user may have published it as it came.
func Given(reply string, h Header) string {
	if strings.HasPrefix(reply, "$") {
		return "a message that a consumer has delivered, which its reply subject says"
	}
	return GivenOut(h)
}

// GivenOut is [Given] of a message that was stored, so that its reply subject is lost.
func GivenOut(h Header) string {
	if len(h) == 0 {
		return ""
	}
	if stream := h.Get(headerStream); stream != "" {
		return fmt.Sprintf("a message of stream %q, given out", stream)
	}
	if h.Get(statusHeader) != "" {
		return "a word of the NATS server about a request"
	}
	return ""
}

// GivenOfDrover is [GivenOut] for subjects on which others may have streams of their own published
// again: only streams of Drover count.
func GivenOfDrover(h Header) string {
	if len(h) == 0 {
		return ""
	}
	if stream := h.Get(headerStream); stream != "" && !subject.StreamOfDrover(stream) {
		return ""
	}
	return GivenOut(h)
}

// answerHead begins every answer of JetStream's API but an acknowledgement.
var answerHead = []byte(`{"type":"io.nats.`)

// GivenBody says what a body is if nobody sends such a one as a request: a task, as workers get
// them, or an answer of JetStream. It is "" for others. It is for requests that may come from other
// accounts, where the reply subject is not that of the delivery any more.
func GivenBody(body []byte) string {
	if bytes.HasPrefix(body, answerHead) {
		return "an answer of JetStream's API"
	}
	if stream, ok := storedBy(body); ok {
		return fmt.Sprintf("an acknowledgement of stream %q", stream)
	}
	if schemas.IsTask(body) {
		return "an activity task, as a worker gets it"
	}
	return ""
}

// GivenTo is [Given] and [GivenBody] of a request to a micro service.
func GivenTo(r micro.Request) string {
	return cmp.Or(Given(r.Reply(), Header(r.Headers())), GivenBody(r.Data()))
}

// NoRequest is the refusal of what was given out where a request is expected; what is one of the
// texts above.
func NoRequest(what string) *schemas.Error {
	return schemas.Errorf(schemas.CodeInvalid, "this is no request: it is %s", what).
		WithHint("send the request with a reply subject of your own, in an inbox")
}

// unasked hands on to fn what may have been published by a user. The rest is dropped before
// anything is done, and its sender told, if there is one to tell.
func (c *Conn) unasked(fn func(Msg)) func(Msg) {
	return func(m Msg) {
		what := Given(m.Reply, m.Header)
		if what == "" && bytes.HasPrefix(m.Data, answerHead) {
			what = "an answer of JetStream's API"
		}
		if what == "" {
			fn(m)
			return
		}
		log := c.log.WithField("subject", m.Subject).WithField("reply", m.Reply)
		log.Log(c.logged.level("given "+what), "a message is refused where requests are heard: it is "+what)
		if !subject.Answerable(m.Reply) {
			return
		}
		answer := &schemas.AckResponse{V: schemas.Version, Error: NoRequest(what)}
		body, err := schemas.MarshalJSON(answer)
		if err == nil {
			err = m.Respond(nil, body)
		}
		if err != nil {
			c.log.WithField("err", err).Debug("whoever sent it is not told")
		}
	}
}
