package signals

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// ReasonUnreadable is the reason that [DeadLetters] gives to an entry of the stream that is no dead
// letter.
const ReasonUnreadable = "unreadable-letter"

// Place tells where the message stood that a dead letter is about. Two messages never have the same
// place.
type Place struct {
	// Partition is the number of a partition, or what stands for it where there is none, such as
	// "tasks".
	Partition string
	// Stream is the kind of the log within the partition, such as "in", "signals" or "alarms"; for
	// tasks, the list.
	Stream string
	// Incarnation tells apart the messages that had the same sequence in a stream that lost its
	// tail: a number, or the digest of the message.
	Incarnation string
	// Sequence is the message's number in its stream.
	Sequence uint64
}

// DeadOptions says which dead letters to read. The zero value means all.
type DeadOptions struct {
	// Reason is the one to read, such as "unknown-workflow". Defaults to all.
	Reason string
	// After is the sequence of the last letter that is known already. Defaults to 0, the beginning.
	After uint64
	// Limit is how many letters to read. Defaults to all.
	Limit int
}

// DeadLetters reads the dead letters of a namespace, the oldest first, up to the last one at the
// time of the call. An error ends the sequence: natsconn.ErrNoStream when the namespace does not
// exist. An entry that cannot be decoded is no error; it comes with the reason [ReasonUnreadable]
// and its body as it stands.
func DeadLetters(
	ctx context.Context, conn Conn, namespace string, o DeadOptions,
) iter.Seq2[schemas.DeadEntry, error] {
	return func(yield func(schemas.DeadEntry, error) bool) {
		read, err := o.read(subject.Namespace(namespace))
		c, closed := connected(conn)
		if err == nil {
			err = closed
		}
		if err != nil {
			yield(schemas.DeadEntry{}, fmt.Errorf("dead letters: %w", err))
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		// The scan calls from a goroutine of its own, and a loop's body must run in the caller's.
		entries, done := make(chan schemas.DeadEntry), make(chan error, 1)
		go func() {
			done <- c.Scan(ctx, subject.Namespace(namespace).StreamDead(), read,
				func(m natsconn.Stored) error {
					select {
					case entries <- entry(m):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
		}()
		for n := 0; o.Limit == 0 || n < o.Limit; n++ {
			select {
			case e := <-entries:
				if !yield(e, nil) {
					return
				}
			case err := <-done:
				if err != nil {
					yield(schemas.DeadEntry{}, hint(namespace, err))
				}
				return
			}
		}
	}
}

func (o DeadOptions) read(ns subject.Namespace) (natsconn.ReadOptions, error) {
	if err := subject.ValidateNamespace(string(ns)); err != nil {
		return natsconn.ReadOptions{}, err
	}
	if o.Limit < 0 {
		return natsconn.ReadOptions{}, fmt.Errorf(
			"DeadOptions.Limit is %d: want at least 1, or 0 for all", o.Limit)
	}
	filter := ns.AllDead()
	if o.Reason != "" {
		if err := dead.ValidateReason(o.Reason); err != nil {
			return natsconn.ReadOptions{}, fmt.Errorf("DeadOptions: %w", err)
		}
		filter = ns.Dead(o.Reason) + ".>"
	}
	return natsconn.ReadOptions{
		FilterSubjects: []string{filter},
		StartSeq:       dead.FirstAfter(o.After),
	}, nil
}

func entry(m natsconn.Stored) schemas.DeadEntry {
	e := schemas.DeadEntry{Sequence: m.Seq}
	if err := schemas.Unmarshal(m.Data, &e.DeadLetter); err != nil {
		e.DeadLetter = schemas.DeadLetter{
			Reason: ReasonUnreadable, Details: err.Error(), Subject: m.Subject,
			Time: schemas.At(m.Time), Body: m.Data,
		}
	}
	return e
}

func hint(namespace string, err error) error {
	if errors.Is(err, natsconn.ErrNoStream) {
		return fmt.Errorf(
			"dead letters: namespace %q does not exist: create it, or name another: %w",
			namespace, err)
	}
	return fmt.Errorf("dead letters: %w", err)
}

// Bury writes a dead letter, once for each reason and place: a second letter about the same message
// counts as written. It tries until ctx ends. The reason is lower-case letters and dashes.
func Bury(
	ctx context.Context, conn Conn, namespace string, at Place, letter schemas.DeadLetter,
) error {
	if err := subject.ValidateNamespace(namespace); err != nil {
		return fmt.Errorf("dead letter: %w", err)
	}
	c, err := connected(conn)
	if err != nil {
		return fmt.Errorf("dead letter: %w", err)
	}
	return dead.Bury(ctx, c, subject.Namespace(namespace), dead.Place(at), letter)
}
