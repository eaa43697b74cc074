package dead

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// ErrInvalid is wrapped by refusals of a letter that could not be found again.
var ErrInvalid = errors.New("invalid dead letter")

// Reasons of the letters that are not written by the broker's core. Append-only.
const (
	// ReasonUndecodable is the reason of what came for a run and cannot be read.
	ReasonUndecodable = "undecodable"
	// ReasonLostRecords is the reason of the letter which says that a history has lost its end.
	ReasonLostRecords = "lost-records"
	// ReasonDamaged is the reason of the letter which names a damaged history, and of what came for its
	// run.
	ReasonDamaged = "damaged"
	// ReasonUndecodableTask is the reason of an activity task that no worker can read.
	ReasonUndecodableTask = "undecodable-task"
	// ReasonUndecodableAlarm is the reason of an alarm that cannot be rung.
	ReasonUndecodableAlarm = "undecodable-alarm"
)

const (
	maxReason  = 64
	maxDetails = 8 << 10
	// headerBudget stays free below the server's limit, as in every message of Drover.
	headerBudget = 64 << 10
)

// Place tells where the message stood that a letter is about. Two messages never have the same
// place.
type Place struct {
	// Partition is the number of a partition, or what stands for it where there is none, such as
	// "tasks".
	Partition string
	// Stream is the kind of the log within the partition, such as "in", "signals" or "alarms"; for
	// tasks, the list.
	Stream string
	// Incarnation tells apart the messages that had the same sequence in a stream that lost its
	// tail: a number, or the [Digest] of the message.
	Incarnation string
	// Sequence is the message's number in its stream.
	Sequence uint64
}

// Tokens gives the place as the last four tokens of a letter's subject.
func (p Place) Tokens() []string {
	return []string{p.Partition, p.Stream, p.Incarnation, strconv.FormatUint(p.Sequence, 10)}
}

// Digest names a message by its content: 16 hex digits of SHA-256 over subject and body.
func Digest(subj string, body []byte) string {
	h := sha256.New()
	h.Write([]byte(subj))
	h.Write([]byte{0})
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// ValidateReason checks a reason: 1 to 64 lower-case letters and dashes.
func ValidateReason(reason string) error {
	if reason == "" || len(reason) > maxReason {
		return fmt.Errorf("%w: Reason %q has %d bytes: want 1 to %d lower-case letters and dashes",
			ErrInvalid, reason, len(reason), maxReason)
	}
	for i := range len(reason) {
		if c := reason[i]; (c < 'a' || c > 'z') && c != '-' {
			return fmt.Errorf("%w: Reason %q has byte %q at %d: want lower-case letters and dashes",
				ErrInvalid, reason, c, i)
		}
	}
	return nil
}

// Compose makes the message of a letter:
// drover.<ns>.dead.<reason>.<partition>.<stream>.<incarnation>.<sequence>, with the header that
// lets it be written only once: a publish that fails with natsconn.ErrWrongSequence finds it there.
// maxPayload is the server's limit in bytes. [Bury] publishes it too.
//
// The letter is JSON. Where the body's base64 would make it too large it is msgpack, and what still
// does not fit is cut.
func Compose(
	ns subject.Namespace, at Place, letter schemas.DeadLetter, maxPayload int64,
) (subj string, h natsconn.Header, body []byte, err error) {
	if err := ValidateReason(letter.Reason); err != nil {
		return "", nil, nil, err
	}
	for _, f := range []struct{ field, token string }{
		{"Place.Partition", at.Partition},
		{"Place.Stream", at.Stream},
		{"Place.Incarnation", at.Incarnation},
	} {
		if err := subject.ValidateID(f.field, f.token); err != nil {
			return "", nil, nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	letter.V = schemas.Version
	letter.Details = cut(letter.Details, maxDetails)
	if body, err = fit(letter, int(maxPayload)-headerBudget); err != nil {
		return "", nil, nil, err
	}
	h = natsconn.Header{}
	natsconn.ExpectLastSubjectSeq(h, 0)
	return ns.Dead(letter.Reason, at.Tokens()...), h, body, nil
}

// fit encodes a letter into at most limit bytes.
func fit(letter schemas.DeadLetter, limit int) ([]byte, error) {
	b, err := schemas.MarshalJSON(&letter)
	if err == nil && len(b) <= limit {
		return b, nil
	}
	if b, err = schemas.Marshal(&letter); err != nil {
		return nil, fmt.Errorf("dead letter: %w", err)
	}
	over := len(b) - limit
	if over <= 0 {
		return b, nil
	}
	whole := len(letter.Body)
	keep := max(whole-over-256, 0) // 256: the sentence that is added
	letter.Body = letter.Body[:keep]
	letter.Details += fmt.Sprintf(
		" (only the first %d of %d bytes of the body are kept: it is too large for a message)",
		keep, whole)
	if b, err = schemas.Marshal(&letter); err != nil {
		return nil, fmt.Errorf("dead letter: %w", err)
	}
	return b, nil
}

// cut shortens text to at most n bytes, and leaves no broken character.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n-len("…")], "") + "…"
}
