package decider

import (
	"context"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// ask is a decision task as it arrived.
type ask struct {
	msg     natsconn.Msg
	typ     string
	decider Decider
	sticky  bool
	arrived time.Time
}

// answer handles one ask from its body to its reply. It runs in a slot of the pool, and returns
// when the Decide has.
func (s *session) answer(work context.Context, a *ask) {
	o, err := s.begin(a)
	if err != nil {
		s.invalid(work, a, err)
		return
	}
	if o.t.task.Replay != nil {
		s.question(work, a, &o.t)
		return
	}
	var cause error
	o.until, cause = limit(&o.t.task, a.arrived, o.began, s.opts.Timeout)
	ctx, cancel := work, context.CancelFunc(func() {})
	if !o.until.IsZero() {
		ctx, cancel = context.WithDeadlineCause(work, o.until, cause)
	}
	defer cancel()
	if ctx.Err() != nil { // stopped, or too late already
		o.fail(work, context.Cause(ctx))
		return
	}
	s.cache.Recall(&o.t.task, &o.t.known)
	// A Decide that ignores its context keeps its slot, but not the broker waiting.
	o.cut.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer o.cut.Done()
		o.fail(work, context.Cause(ctx))
	})
	var decisions []schemas.Decision
	err = errGoexit
	defer func() { // deferred for the sake of runtime.Goexit
		if !stop() {
			o.cut.Wait()
		}
		if err != nil {
			o.fail(work, err)
			return
		}
		o.reply(work, decisions)
	}()
	if decisions, err = decide(ctx, a.decider, &o.t); err == nil {
		decisions, err = o.t.spill(ctx, decisions)
	}
}

// begin reads the task of an ask.
func (s *session) begin(a *ask) (*outcome, error) {
	o := &outcome{s: s, a: a}
	t := &o.t
	t.known.Pages = s.pages
	dt := &t.task
	if err := schemas.UnmarshalOwned(a.msg.Data, dt); err != nil {
		return nil, err
	}
	switch {
	case a.msg.Reply == "":
		return nil, fmt.Errorf("%w: it has no reply subject: send it as a request", ErrInvalidTask)
	case dt.Token == "":
		return nil, fmt.Errorf("%w: token is empty: an answer could not be told from another",
			ErrInvalidTask)
	case dt.Type != a.typ:
		return nil, fmt.Errorf("%w: type is %q on the subject of type %q",
			ErrInvalidTask, dt.Type, a.typ)
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	t.payloads, t.known.Window, t.inJSON = s.payloads, len(a.msg.Data), schemas.IsJSON(a.msg.Data)
	t.pool = s.pool
	o.began = time.Now()
	return o, nil
}

// decide completes the window and calls the decider. A panic is an error, and its errors are
// [sound].
func decide(ctx context.Context, d Decider, t *Task) (decisions []schemas.Decision, err error) {
	defer caught(&err)
	if err := t.known.FillWindow(ctx, &t.task); err != nil {
		return nil, err
	}
	decisions, err = d.Decide(ctx, t)
	return decisions, safeError(err)
}

// safeError returns err, or one that says what is wrong with it if it cannot be asked what it is:
// the methods of an error are the decider's own code, and a nil pointer of an error type is
// returned easily. What [fmt] prints of it is safe always.
func safeError(err error) (safe error) {
	if err == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			safe = fmt.Errorf("the decider returned a %T whose methods panic: %v", err, p)
		}
	}()
	_, _ = kindOf(err)
	return err
}

// limit returns when a Decide that begins now must end, and the cause with which it then does. The
// zero time is no limit.
//
// The deadline is an instant of the broker's clock. What is left of it by the local clock counts
// only if it is plausible: more than nothing, and no more than the span between the newest event
// that the task shows and its deadline. Otherwise the clocks differ, and the span is counted from
// the arrival of the task. So a worker with a wrong clock still answers, and one that is overrun
// still drops what has waited too long in its queue.
func limit(
	dt *schemas.DecisionTask, arrived, now time.Time, timeout time.Duration,
) (until time.Time, cause error) {
	if dt.Deadline != 0 {
		left, newest := dt.Deadline.Sub(schemas.At(arrived)), schemas.Timestamp(0)
		if n := len(dt.Events); n > 0 {
			newest = dt.Events[n-1].Time
		}
		if span := dt.Deadline.Sub(newest); newest != 0 && span > 0 && (left <= 0 || left > span) {
			left = span
		}
		until, cause = arrived.Add(left), ErrDeadline
	}
	if timeout > 0 && (until.IsZero() || now.Add(timeout).Before(until)) {
		until, cause = now.Add(timeout), ErrTimeout
	}
	return until, cause
}
