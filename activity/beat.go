package activity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

const (
	// freeBeat is how often an activity without heartbeat timeout may beat: a request to cancel
	// comes in that way.
	freeBeat = time.Second
	// beatPatience bounds how long one heartbeat may wait for its answer.
	beatPatience = 5 * time.Second
	// beatRetry is how soon a heartbeat is repeated that was not answered.
	beatRetry = time.Second
)

// Heartbeat says that the activity of ctx makes progress, and how far it is. details are as in
// [Fail]; if the activity times out, the decider sees the last ones.
//
// It may be called as often as wanted: at most one request is sent in a third of the heartbeat
// timeout (in a second, if there is none), and the last details win: those of an attempt that fails
// are sent before its end. Bytes are copied. A heartbeat that the service does not answer is
// repeated in the background and is no error. There are three:
//
//   - [ErrCanceled]: the decider requested the activity's end. The context is cancelled. Heartbeats
//     go on to count.
//   - [ErrGone]: the activity is closed or overtaken; end it at once. The context is cancelled.
//   - [ErrNoActivity], or the cause of ctx's end, or a refusal of the details.
func Heartbeat(ctx context.Context, details any) error {
	a := activityOf(ctx)
	if a == nil {
		return ErrNoActivity
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, ErrCanceled) {
		return cause
	}
	// bytes are the caller's, who may use them again while these wait
	p := slices.Clone(describe(details))
	if limit := int(a.beats.conn.MaxPayload()) - headerBudget; len(p) > limit {
		return fmt.Errorf("activity: heartbeat details have %d bytes: want at most %d",
			len(p), limit)
	}
	return a.beats.beat(ctx, p)
}

// beats sends the heartbeats of one attempt.
type beats struct {
	*attempt
	conn     *natsconn.Conn
	cancel   context.CancelCauseFunc // of the attempt's context
	interval time.Duration

	mu      sync.Mutex
	last    time.Time // when the last request was sent; zero: never
	sending bool
	pending bool
	details schemas.Payload // of the last call
	timer   *time.Timer     // sends what is pending; nil: none is set
	stopped bool
	err     error // ErrCanceled or ErrGone, once known
	unasked bool  // ErrGone came by the control subject, not as the answer to a heartbeat
}

func newBeats(a *attempt, conn *natsconn.Conn, cancel context.CancelCauseFunc) *beats {
	b := &beats{attempt: a, conn: conn, cancel: cancel, interval: freeBeat}
	if a.task.Heartbeat.Limited() {
		b.interval = a.task.Heartbeat.Std() / 3
	}
	return b
}

func (b *beats) beat(caller context.Context, details schemas.Payload) error {
	// the request is not the caller's: other calls may have left their details to it
	ctx := context.WithoutCancel(caller)
	b.mu.Lock()
	if b.stopped || errors.Is(b.err, ErrGone) {
		defer b.mu.Unlock()
		return b.err
	}
	b.details, b.pending = details, true
	wait := time.Until(b.last.Add(b.interval))
	if b.sending || wait > 0 {
		b.later(ctx, wait)
		defer b.mu.Unlock()
		return b.err
	}
	b.mu.Unlock()
	if caller.Err() != nil { // canceled before, and it beats all the same
		return b.send(ctx)
	}
	sent := make(chan error, 1)
	go func() { sent <- b.send(ctx) }()
	select {
	case err := <-sent:
		return err
	case <-caller.Done():
		return context.Cause(caller)
	}
}

// later sets the timer for what is pending, unless it is set. The caller holds mu.
func (b *beats) later(ctx context.Context, wait time.Duration) {
	if b.timer != nil || b.sending || b.stopped { // a request under way sees to what came meanwhile
		return
	}
	b.timer = time.AfterFunc(wait, func() {
		b.mu.Lock()
		b.timer = nil
		b.mu.Unlock()
		_ = b.send(ctx) // it is also kept in b.err
	})
}

// send sends what is pending and takes the answer to heart.
func (b *beats) send(ctx context.Context) error {
	b.mu.Lock()
	if !b.pending || b.sending || b.stopped {
		defer b.mu.Unlock()
		return b.err
	}
	h := &schemas.Heartbeat{Token: b.token, Details: b.details}
	b.sending, b.pending, b.last = true, false, time.Now()
	b.mu.Unlock()

	answer, err := b.request(ctx, h)

	b.mu.Lock()
	defer b.mu.Unlock()
	b.sending = false
	if b.stopped {
		return b.err
	}
	switch {
	case err != nil:
		b.log().WithField("err", err).Warn("a heartbeat was not answered; trying again")
		b.pending = true
		b.later(ctx, min(b.interval, beatRetry))
	case answer.Gone:
		b.end(ErrGone, answer.Reason)
	case answer.CancelRequested && b.err == nil:
		b.end(ErrCanceled, answer.Reason)
	}
	if b.pending && !errors.Is(b.err, ErrGone) {
		b.later(ctx, time.Until(b.last.Add(b.interval)))
	}
	return b.err
}

// told passes on what the control subject says: the decider has requested the activity's end, or
// nobody waits for it.
func (b *beats) told(c *schemas.Control) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.stopped || errors.Is(b.err, ErrGone):
	case c.Gone:
		b.unasked = true
		b.end(ErrGone, c.Reason)
	case b.err == nil:
		b.end(ErrCanceled, c.Reason)
	}
}

// end notes why the activity should end and cancels its context. The caller holds mu.
func (b *beats) end(why error, reason string) {
	b.bareLog().WithField("reason", reason).Debugf("the activity is to end: %v", why)
	b.err = why
	b.cancel(why)
}

func (b *beats) request(
	ctx context.Context, h *schemas.Heartbeat,
) (a schemas.BeatAnswer, err error) {
	body, err := schemas.Marshal(h)
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, beatPatience)
	defer cancel()
	m, err := b.conn.Request(ctx, b.task.Beat, nil, body)
	if err != nil {
		return a, err
	}
	return a, schemas.Unmarshal(m.Data, &a)
}

// cause is what ended the attempt, whose context says why: ErrGone also when the context had ended
// before, for another reason. What one has done all the same that could not know of it is no
// secret: the dead letters keep it.
func (b *beats) cause(why error, done bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !errors.Is(b.err, ErrGone):
		return why
	case done && b.unasked:
		return nil
	}
	return ErrGone
}

// farewell sends what waited for its turn when the beating was stopped: the next attempt goes on
// from there. Its answer is waited for, so that the owner has it before the outcome, but not for
// long: one that is away holds up no outcome.
func (b *beats) farewell(ctx context.Context) {
	b.mu.Lock()
	h, due := &schemas.Heartbeat{Token: b.token, Details: b.details}, b.pending &&
		!errors.Is(b.err, ErrGone)
	b.pending = false
	b.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, beatRetry)
	defer cancel()
	if _, err := b.request(ctx, h); err != nil {
		b.log().WithField("err", err).Warn("the last heartbeat of an attempt was not answered")
	}
}

// stop ends all beating: the function has returned.
func (b *beats) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	if b.timer != nil {
		b.timer.Stop()
	}
}
