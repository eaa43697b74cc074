package dead

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	// how long an acknowledgement may take before the letter is sent again
	oneTry    = 5 * time.Second
	firstWait = 5 * time.Millisecond
	lastWait  = time.Second
)

// Bury writes a dead letter and returns once it is stored. A letter for the same reason and place
// that is there already counts as stored. Bury tries again until ctx ends, since the repeat is
// harmless; its error then wraps the last refusal. A letter that is itself at fault is refused at
// once, with an error that wraps [ErrInvalid], and so is one that this user may not publish
// (natsconn.ErrPermission).
func Bury(
	ctx context.Context, conn *natsconn.Conn, ns subject.Namespace, at Place,
	letter schemas.DeadLetter,
) error {
	subj, h, body, err := Compose(ns, at, letter, conn.MaxPayload())
	if err != nil {
		return err
	}
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		try, cancel := context.WithTimeout(ctx, oneTry)
		_, err := conn.PublishSync(try, subj, h, body)
		cancel()
		switch {
		case err == nil, errors.Is(err, natsconn.ErrWrongSequence): // it was there before
			return nil
		case errors.Is(err, natsconn.ErrPermission),
			errors.Is(err, natsconn.ErrClosed),
			errors.Is(err, natsconn.ErrInvalid):
			return fmt.Errorf("dead letter: %w", err)
		}
		if ended := sleep.For(ctx, wait); ended != nil {
			return fmt.Errorf("dead letter: %w (last try: %w)", ended, err)
		}
	}
}

// After is the first sequence after another one, for who reads on. Nothing is after the highest,
// and 0 would be the beginning.
func FirstAfter(after uint64) uint64 { return max(after+1, after) }
