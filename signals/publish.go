package signals

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	// patience is how long a signal is tried at least, if ctx allows: a replicated stream takes 4
	// to 6 s to elect a leader.
	patience  = 12 * time.Second
	oneTry    = 5 * time.Second
	firstWait = 20 * time.Millisecond
	lastWait  = time.Second

	// headerBudget stays free below the server's limit, as in every message of Drover: the input
	// becomes part of a history record.
	headerBudget = 64 << 10
)

// ErrUnknown says that a signal may or may not be stored. With [PublishOnce] the call can be
// repeated without harm.
var ErrUnknown = errors.New("it is not known whether the signal is stored")

// Conn is what has a connection to NATS, such as a client of Drover.
type Conn interface{ NATS() *nats.Conn }

// Publish stores a signal for the workflow's open run and returns its sequence in the signals
// stream. The ids are 1 to 256 bytes of text without control characters; body is the signal's
// input: JSON, text or any bytes, up to the server's limit less 64 KiB.
//
// While no stream takes the signal, because a leader is being elected, it tries again for about ten
// seconds. Errors: subject.ErrInvalidID and natsconn.ErrTooLarge at once; natsconn.ErrNoStream when
// the namespace does not exist; natsconn.ErrPermission; and [ErrUnknown] when no answer came, in
// which case a second call may signal twice.
func Publish(
	ctx context.Context, conn Conn, namespace, workflowID, name string, body []byte,
) (seq uint64, err error) {
	subj, err := check(conn, namespace, workflowID, name, body)
	if err != nil {
		return 0, err
	}
	return publish(ctx, natsconn.Of(conn), subj, nil, body, false)
}

// PublishOnce is [Publish] with a request id, of the same form as the other ids and without a space
// at an end, that tells repeats apart from new signals. It tries again when no answer came, too.
func PublishOnce(
	ctx context.Context, conn Conn, namespace, workflowID, name, requestID string, body []byte,
) (seq uint64, err error) {
	subj, err := check(conn, namespace, workflowID, name, body)
	if err != nil {
		return 0, err
	}
	if err := subject.ValidateID("request id", requestID); err != nil {
		return 0, fmt.Errorf("signal: %w", err)
	}
	if err := schemas.ValidateSignalRequestID("request id", requestID); err != nil {
		return 0, fmt.Errorf("signal: %w: %w", subject.ErrInvalidID, err)
	}
	return publish(ctx, natsconn.Of(conn), subj,
		natsconn.Header{schemas.RequestIDHeader: []string{requestID}}, body, true)
}

func check(conn Conn, namespace, workflowID, name string, body []byte) (subj string, err error) {
	err = errors.Join(
		subject.ValidateNamespace(namespace),
		subject.ValidateID("workflow id", workflowID),
		subject.ValidateID("signal name", name),
	)
	if err != nil {
		return "", fmt.Errorf("signal: %w", err)
	}
	c, err := connected(conn)
	if err != nil {
		return "", fmt.Errorf("signal: %w", err)
	}
	if limit := c.MaxPayload() - headerBudget; int64(len(body)) > limit {
		return "", fmt.Errorf(
			"signal: %w: the input has %d bytes, want at most %d: store it elsewhere and send where",
			natsconn.ErrTooLarge, len(body), limit)
	}
	return subject.Namespace(namespace).Signal(workflowID, name), nil
}

// connected is the connection of conn, unless it is closed.
func connected(conn Conn) (*natsconn.Conn, error) {
	c := natsconn.Of(conn)
	if c == nil {
		return nil, fmt.Errorf("connection: %w", natsconn.ErrClosed)
	}
	return c, nil
}

// publish tries until the signal is stored or refused, or its patience ends. A try that was not
// answered is repeated only if that is safe.
func publish(
	ctx context.Context, conn *natsconn.Conn, subj string, h natsconn.Header, body []byte,
	repeatable bool,
) (seq uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	limit := patience
	if repeatable {
		limit = oneTry
	}
	unknown := false // a try without an answer may be stored, whatever the later ones say
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		seq, err = try(ctx, conn, limit, subj, h, body)
		if err == nil {
			return seq, nil
		}
		again := errors.Is(err, natsconn.ErrNoStream)
		if unanswered(err) {
			again, unknown = repeatable, true
		}
		if !again || sleep.For(ctx, wait) != nil {
			break
		}
	}
	if unknown {
		return 0, fmt.Errorf("signal: %w: %w", ErrUnknown, err)
	}
	return 0, fmt.Errorf("signal: %w", err)
}

func try(
	ctx context.Context, conn *natsconn.Conn, limit time.Duration, subj string, h natsconn.Header,
	body []byte,
) (seq uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return conn.PublishSync(ctx, subj, h, body)
}

// unanswered tells whether a publish was sent and its fate is open. A refusal for want of
// permission comes as a timeout too, but nothing was stored.
func unanswered(err error) bool {
	if errors.Is(err, natsconn.ErrPermission) || errors.Is(err, natsconn.ErrDisconnected) {
		return false
	}
	return errors.Is(err, natsconn.ErrTimeout) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}
