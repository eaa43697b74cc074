package natsconn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// The sentinel errors of this package; test with errors.Is.
var (
	// ErrNoConnection means that the first connection could not be made.
	ErrNoConnection = errors.New("no connection to NATS")
	// ErrDisconnected means that the connection is down at the moment and that nothing was sent.
	ErrDisconnected = errors.New("disconnected from NATS, nothing was sent")
	// ErrClosed means that the connection, outbox or reader was closed by this process. A write
	// that was under way may or may not be stored.
	ErrClosed = errors.New("closed")
	// ErrTimeout means that no answer came in time. The outcome of a write is unknown, as its text
	// says: read before you repeat it.
	ErrTimeout = errors.New("no answer in time")
	// ErrPermission means that the server refused a subject to this user. See [RefusedError].
	ErrPermission = errors.New("not permitted by the NATS server")
	// ErrNoResponders means that nobody listens on the subject of a request; nothing was received
	// by anybody.
	ErrNoResponders = errors.New("nobody listens on the subject")
	// ErrUnavailable means that JetStream cannot answer at the moment: a cluster that has lost a
	// server may have no leader yet. Nothing was done. Questions are asked again until their
	// context ends before this is told.
	ErrUnavailable = errors.New("JetStream is unavailable for now")
	// ErrSwitchedOff means that JetStream is not enabled for this account, or nowhere in this NATS.
	// What it holds is there again when it is. [SwitchedOffHint] says what to do about it.
	ErrSwitchedOff = errors.New("JetStream is not enabled")
	// ErrNoStream means that no stream has the name, or that none takes the subject.
	ErrNoStream = errors.New("no such stream")
	// ErrNoConsumer means that the stream has no consumer of that name.
	ErrNoConsumer = errors.New("no such consumer")
	// ErrNotFound means that the stream or bucket holds no such message or key.
	ErrNotFound = errors.New("not found")
	// ErrWrongSequence is a refused compare-and-set: somebody else wrote. Reload. See
	// [SequenceError].
	ErrWrongSequence = errors.New("wrong last sequence")
	// ErrInFlight is a compare-and-set refused because another write of the subject is under way on
	// a replicated stream. It can follow the acknowledgement of one's own write. Try again in a few
	// milliseconds.
	ErrInFlight = errors.New("another write of the subject is in flight")
	// ErrTooLarge means that a message exceeds the server's max_payload (see [Conn.MaxPayload]) or
	// the stream's limit.
	ErrTooLarge = errors.New("message too large")
	// ErrFull means that a stream, its account or the server holds as many bytes or messages as it
	// may, so that nothing was stored. [RoomHint] says what to do about it.
	ErrFull = errors.New("the stream is full")
	// ErrManyConsumers means that a stream has as many consumers as its account allows, so that
	// nobody else can read it. [ConsumersHint] says what to do about it.
	ErrManyConsumers = errors.New("the stream has as many consumers as the account allows")
	// ErrStreamRegressed means that a stream no longer holds what was read from it: it lost its
	// tail or was made anew, so sequence numbers mean other messages now. Forget positions in it
	// and read it again.
	ErrStreamRegressed = errors.New("stream went back, its sequence numbers were reused")
	// ErrInvalid means that an argument is wrong; the text names it.
	ErrInvalid = errors.New("invalid argument")
)

// SequenceError is a refused compare-and-set; it wraps [ErrWrongSequence].
type SequenceError struct {
	Last uint64 // the last sequence that the server has for the checked subject or stream; 0 = none
}

// Error gives the server's sequence.
func (e *SequenceError) Error() string {
	return "wrong last sequence: the server has " + strconv.FormatUint(e.Last, 10)
}

// Unwrap returns [ErrWrongSequence].
func (e *SequenceError) Unwrap() error { return ErrWrongSequence }

// APIError is any refusal by JetStream. It wraps the sentinel of its code, if there is one.
type APIError struct {
	Code        int    // like an HTTP status
	ErrCode     int    // the server's own code, 10000 and above
	Description string // the server's text
}

// Error gives the server's text and code.
func (e *APIError) Error() string {
	return fmt.Sprintf("JetStream refused: %s (code %d)", e.Description, e.ErrCode)
}

// Unwrap returns the sentinel of the code, or nil. One code stands for every failed deletion and
// one for every failed store, with the reason in the text only.
func (e *APIError) Unwrap() error {
	if e.ErrCode == codeDeleteFailed &&
		(e.Description == "no message found" || e.Description == "stream store EOF") {
		return ErrNotFound
	}
	if e.ErrCode == codeStoreFailed && strings.HasPrefix(e.Description, "maximum ") {
		return ErrFull
	}
	return sentinels[e.ErrCode]
}

// RoomHint says how to make room after an [ErrFull]: whose limit it is, that of the streams of a
// namespace, of their account, or of the server.
func RoomHint(err error, namespace string) string {
	e, _ := errors.AsType[*APIError](err)
	switch {
	case e != nil && e.ErrCode == codeAccountFull:
		return AccountRoomHint
	case e != nil && e.ErrCode == codeServerFull:
		return ServerRoomHint
	default:
		return "raise the limit: drover namespace create " + namespace + " --max-bytes N"
	}
}

// AccountRoomHint is what to do about an account whose storage is used up.
const AccountRoomHint = "raise the storage limit of the account of NATS, or remove what is not " +
	"needed; drover doctor tells how much is used"

// ServerRoomHint is what to do about a server whose storage is used up. A server of ours takes
// three quarters of what is free as it starts.
const ServerRoomHint = "give the NATS server more room: make room on its disk and start it " +
	"again, or raise max_file_store of its jetstream block"

// ConsumersHint is what to do about an account that allows a stream fewer consumers than there must
// be.
const ConsumersHint = "raise the account's limit of consumers for a stream (max_consumers): it " +
	"takes two for each partition of a namespace, one for each server, and four at least"

// SwitchedOffHint is what to do about an account that has no JetStream any more.
const SwitchedOffHint = "enable it again for the account of NATS, and reload its servers"

const (
	codeAccountFull    = 10002
	codeServerFull     = 10023
	codeDeleteFailed   = 10057
	codeWrongSequence  = 10071
	codeStoreFailed    = 10077
	codeInFlight       = 10164
	codeClusterNotUp   = 10008
	statusNoResponders = "503"
)

// sentinels maps the server's codes to errors of this package; append only.
var sentinels = map[int]error{
	codeAccountFull:   ErrFull,
	codeClusterNotUp:  ErrUnavailable,
	10026:             ErrManyConsumers,
	10014:             ErrNoConsumer,
	codeServerFull:    ErrFull,
	10037:             ErrNotFound,
	10043:             ErrNotFound,
	10039:             ErrSwitchedOff,
	10076:             ErrSwitchedOff,
	10054:             ErrTooLarge,
	10059:             ErrNoStream,
	codeWrongSequence: ErrWrongSequence,
	codeInFlight:      ErrInFlight,
}

// wireError is the error object of JetStream's answers.
type wireError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

// asError turns the server's answer into the error that callers see.
func (w *wireError) asError() error {
	if w.ErrCode == codeWrongSequence {
		if _, num, ok := strings.Cut(w.Description, ": "); ok {
			if last, err := strconv.ParseUint(strings.TrimSpace(num), 10, 64); err == nil {
				return &SequenceError{Last: last}
			}
		}
	}
	return &APIError{Code: w.Code, ErrCode: w.ErrCode, Description: w.Description}
}

// Transient tells whether an error says nothing about what was asked for or written, and the same
// may succeed a little later.
func Transient(err error) bool {
	return errors.Is(err, ErrDisconnected) || errors.Is(err, ErrTimeout) ||
		errors.Is(err, ErrUnavailable)
}

// OutcomeUnknown says of the error of a write that it may have been done, where that is so. A read
// has no outcome, and of a request only who makes it knows which of the two it is.
func OutcomeUnknown(err error) error {
	if errors.Is(err, ErrTimeout) {
		return fmt.Errorf("%w; the outcome is unknown", err)
	}
	return err
}

// fromNATS gives the client library's errors the names of this package. A lost connection while an
// answer is awaited (nats.ErrDisconnected) is not [ErrDisconnected]: the request had been sent, so
// its outcome is unknown.
func fromNATS(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrDisconnected), errors.Is(err, ErrClosed):
		return err
	case errors.Is(err, nats.ErrReconnectBufExceeded),
		errors.Is(err, nats.ErrConnectionReconnecting):
		return ErrDisconnected
	case errors.Is(err, nats.ErrDisconnected):
		return fmt.Errorf("%w: the connection broke", ErrTimeout)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	case errors.Is(err, nats.ErrNoResponders):
		return ErrNoResponders
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%w: %w: spill the payload before you publish", ErrTooLarge, err)
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrInvalidConnection):
		return fmt.Errorf("connection: %w", ErrClosed)
	case errors.Is(err, nats.ErrBadSubject):
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	default:
		return err
	}
}
