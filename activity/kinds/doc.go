// Package kinds holds kinds of activities that need no code of the user: a call over HTTP, a text
// from a URL or a file, a message or a request over NATS, and a command of a shell. A worker serves
// them when they are registered with it:
//
//	activity.Register(w, kinds.TypeHTTP, kinds.HTTP(nil))
//	activity.Register(w, kinds.TypeRequest, kinds.Request(client, nil))
//
// The command "drover worker" serves them without any program, the shell only if it is told to. It
// may be imported by programs that run workers; it keeps no state but the HTTP connections.
//
// # Once or more than once
//
// Like every activity a call is made at least once, unless it is scheduled with NotIdempotent. A
// GET or HEAD can be repeated; for any other method, and for a request that changes something,
// schedule it with NotIdempotent, or make sure that the service recognises repeats: each call
// carries the activity's idempotency key, the same for all its attempts, in the header
// Idempotency-Key.
//
// # Failures
//
// The reasons of failures are words that a decider or a retry policy can compare; they are listed
// as constants. A retry policy that names [NonRetryable] does not repeat what a repeat cannot mend.
//
// # What a workflow may reach
//
// The input says where a call goes, so whoever may start workflows can make the worker call: give
// it the network and the NATS user of somebody who may do no harm, and set HTTPOptions.Allow.
// Environment variables for proxies are not heeded.
package kinds

import (
	"fmt"
	"net/http"

	"github.com/droverhq/drover/activity"
)

// The names under which the kinds are registered, by drover worker as well.
const (
	TypeHTTP    = "http"
	TypeRequest = "request"
	TypePublish = "publish"
	TypeLoad    = "load"
	TypeShell   = "shell"
)

// HeaderKey carries the idempotency key of the activity.
const HeaderKey = "Idempotency-Key"

// Reasons of failures. Append-only. A status that was not expected is "http_status_" and the
// number, an error that a micro service answers with is "service_error_" and its code.
const (
	// ReasonDenied: the worker may not call that. Nothing was sent.
	ReasonDenied = "denied"
	// ReasonTimeout: no answer came within the input's timeout. What became of the call is unknown.
	ReasonTimeout = "timeout"
	// ReasonUnreachable: no connection came about. Nothing was sent.
	ReasonUnreachable = "http_unreachable"
	// ReasonBroken: the connection broke before the whole answer had come. What became of the call
	// is unknown.
	ReasonBroken = "http_broken"
	// ReasonRedirects: the answer was one redirect too many.
	ReasonRedirects = "http_redirects"
	// ReasonTooLarge: the answer is larger than the worker takes.
	ReasonTooLarge = "answer_too_large"
	// ReasonNoResponders: nobody listens on the subject. Nothing was received by anybody.
	ReasonNoResponders = "no_responders"
	// ReasonNoFile: there is no such file.
	ReasonNoFile = "no_file"
	// ReasonNoText: what was loaded is no text in the charset.
	ReasonNoText = "no_text"

	statusReason  = "http_status_"
	serviceReason = "service_error_"
)

// NonRetryable are the reasons for which another attempt would fail in the same way: input that
// cannot be sent, answers that cannot be taken, and the statuses 400 to 451 but for 408 (timeout),
// 421, 423, 425 and 429 (later). It is meant for the field of that name in a retry policy.
func NonRetryable() []string {
	reasons := []string{
		activity.ReasonBadInput, ReasonDenied, ReasonRedirects, ReasonTooLarge, ReasonNoText,
	}
	for code := http.StatusBadRequest; code <= http.StatusUnavailableForLegalReasons; code++ {
		switch code {
		case http.StatusRequestTimeout,
			http.StatusMisdirectedRequest,
			http.StatusLocked,
			http.StatusTooEarly,
			http.StatusTooManyRequests:
			continue
		}
		if http.StatusText(code) != "" {
			reasons = append(reasons, statusOf(code))
		}
	}
	return reasons
}

func statusOf(code int) string { return fmt.Sprint(statusReason, code) }

func badInput(format string, args ...any) error {
	return activity.Fail(activity.ReasonBadInput, fmt.Sprintf(format, args...))
}
