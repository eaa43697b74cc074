package kinds

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// PublishInput is the input of the kind publish, which has no result.
type PublishInput struct {
	// Subject must not belong to Drover or to the server: those begin with "drover.",
	// "drover-server.", "$" and "_", or with the prefix under which the worker reaches JetStream.
	Subject string            `json:"subject"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is sent as it is, except that a JSON string is sent as its text.
	Body schemas.Payload `json:"body,omitempty"`
}

// PublishOptions of [Publish]. The zero value of every field is its default.
type PublishOptions struct {
	// Allow judges each subject before anything is sent; an error is the reason why not. Subjects
	// of Drover and of the server are denied before. Defaults to all others.
	Allow func(subject string) error
}

// Publish returns the function of the kind publish: one message over conn to whoever listens, which
// may be nobody, and to the streams that have the subject. It ends when the server has the message;
// whether a stream has stored it is not known. Nil options mean all defaults.
func Publish(
	on activity.Conn, o *PublishOptions,
) func(ctx context.Context, in PublishInput) (struct{}, error) {
	conn := natsconn.Of(on)
	if conn == nil {
		panic("kinds: Publish needs a connection")
	}
	if o == nil {
		o = &PublishOptions{}
	}
	allow := o.Allow
	return func(ctx context.Context, in PublishInput) (none struct{}, err error) {
		if err := allowed(conn, in.Subject, allow); err != nil {
			return none, err
		}
		h, err := headersOf(ctx, in.Headers)
		if err != nil {
			return none, err
		}
		return none, send(ctx, conn, in.Subject, h, in.Body)
	}
}

// send publishes, and judges what became of it.
func send(
	ctx context.Context, conn *natsconn.Conn, subject string, h natsconn.Header, p schemas.Payload,
) error {
	body, _ := content(p)
	err := conn.PublishHeard(ctx, subject, h, body)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, natsconn.ErrPermission):
		return activity.Fail(ReasonDenied, err)
	case errors.Is(err, natsconn.ErrTooLarge):
		return badInput("body: %v", err)
	case errors.Is(err, natsconn.ErrInvalid):
		return badSubject(subject)
	}
	return fmt.Errorf("publish: %w", err)
}
