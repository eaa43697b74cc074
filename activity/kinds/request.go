package kinds

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

const (
	defaultRequestTimeout = time.Minute
	// What micro services answer errors with.
	headerServiceError = "Nats-Service-Error"
	headerServiceCode  = "Nats-Service-Error-Code"
)

// RequestInput is the input of the kind request. Its result is the body of the reply: JSON, text or
// bytes.
type RequestInput struct {
	// Subject must not belong to Drover or to the server: those begin with "drover.",
	// "drover-server.", "$" and "_", or with the prefix under which the worker reaches JetStream.
	Subject string            `json:"subject"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is sent as it is, except that a JSON string is sent as its text.
	Body schemas.Payload `json:"body,omitempty"`
	// Timeout bounds the request. Defaults to what is left to the activity, and to a minute if that
	// has no limit.
	Timeout schemas.Duration `json:"timeout,omitempty"`
}

// RequestOptions of [Request]. The zero value of every field is its default.
type RequestOptions struct {
	// Allow judges each subject before anything is sent; an error is the reason why not. Subjects
	// of Drover and of the server are denied before. Defaults to all others.
	Allow func(subject string) error
}

// ServiceError is the details of a failure "service_error_…".
type ServiceError struct {
	Code        string          `json:"code"`
	Description string          `json:"description,omitempty"`
	Body        schemas.Payload `json:"body,omitempty"`
}

// Request returns the function of the kind request: one request over conn to whoever listens, be it
// a micro service or any subscriber that replies. Nil options mean all defaults.
//
// An answer with the error headers of micro services fails with "service_error_" and the code, and
// a [ServiceError] as details.
func Request(
	on activity.Conn, o *RequestOptions,
) func(ctx context.Context, in RequestInput) (schemas.Payload, error) {
	conn := natsconn.Of(on)
	if conn == nil {
		panic("kinds: Request needs a connection")
	}
	if o == nil {
		o = &RequestOptions{}
	}
	allow := o.Allow
	return func(ctx context.Context, in RequestInput) (schemas.Payload, error) {
		if err := allowed(conn, in.Subject, allow); err != nil {
			return nil, err
		}
		h, err := headersOf(ctx, in.Headers)
		if err != nil {
			return nil, err
		}
		body, _ := content(in.Body)
		return exchange(ctx, conn, in, h, body)
	}
}

// exchange sends the request and judges the answer.
func exchange(
	ctx context.Context, conn *natsconn.Conn, in RequestInput, h natsconn.Header, body []byte,
) (schemas.Payload, error) {
	whole := ctx
	limit := in.Timeout.Std()
	if _, bounded := ctx.Deadline(); !in.Timeout.Limited() && !bounded {
		limit = defaultRequestTimeout
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	m, err := conn.RequestAny(ctx, in.Subject, h, body)
	switch {
	case err == nil:
	case whole.Err() != nil:
		return nil, context.Cause(whole)
	case errors.Is(err, natsconn.ErrNoResponders):
		return nil, activity.Fail(ReasonNoResponders, err)
	case errors.Is(err, natsconn.ErrPermission):
		return nil, activity.Fail(ReasonDenied, err)
	case errors.Is(err, natsconn.ErrTooLarge):
		return nil, badInput("body: %v", err)
	case errors.Is(err, natsconn.ErrInvalid):
		return nil, badSubject(in.Subject)
	case errors.Is(err, natsconn.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return nil, activity.Fail(ReasonTimeout, err)
	default:
		return nil, fmt.Errorf("request: %w", err)
	}
	if code := m.Header.Get(headerServiceCode); code != "" {
		return nil, activity.Fail(serviceReason+code, ServiceError{
			Code: code, Description: m.Header.Get(headerServiceError),
			Body: m.Data[:min(len(m.Data), maxFailureBody)],
		})
	}
	return m.Data, nil
}

// allowed refuses subjects that nobody can listen on and those of Drover and of the server: a
// request there would be made with the worker's rights.
func allowed(conn *natsconn.Conn, to string, allow func(string) error) error {
	switch {
	case to == "" || strings.ContainsAny(to, " \t\r\n*>") ||
		strings.ContainsFunc(to, func(r rune) bool { return r < ' ' }) ||
		strings.HasPrefix(to, ".") || strings.HasSuffix(to, ".") || strings.Contains(to, ".."):
		return badInput(
			"subject is %q: want tokens with dots between them, without white space and wildcards",
			to)
	case subject.Reserved(to) || conn.OfServer(to) || strings.HasPrefix(to, "_"):
		return activity.Fail(ReasonDenied,
			fmt.Sprintf("subject %q belongs to Drover or to the NATS server", to))
	case allow == nil:
		return nil
	}
	if err := allow(to); err != nil {
		return activity.Fail(ReasonDenied, err)
	}
	return nil
}

// badSubject is the failure for a subject that cannot be sent.
func badSubject(subject string) error {
	return badInput(
		"subject has %d bytes: want fewer, as many as a line of the NATS protocol takes",
		len(subject))
}

func headersOf(ctx context.Context, headers map[string]string) (natsconn.Header, error) {
	h, keyed := natsconn.Header{}, false
	for name, value := range headers {
		if !validHeader(name, value) || len(name) > 4 && strings.EqualFold(name[:5], "Nats-") {
			return nil, badInput(
				"header %q cannot be sent: want a name of letters, digits and signs that does "+
					"not begin with Nats-, and a value without control characters", name)
		}
		h.Set(name, value)
		keyed = keyed || strings.EqualFold(name, HeaderKey)
	}
	if key := activity.Info(ctx).IdempotencyKey; key != "" && !keyed {
		h.Set(HeaderKey, key)
	}
	return h, nil
}
