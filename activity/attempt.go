package activity

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/internal/deadline"
	"github.com/droverhq/drover/schemas"
)

// lateOutcome is how long after an attempt's last moment an outcome that could not be stored is
// still tried. After that the task goes back to its list, and who gets it asks first.
const lateOutcome = time.Minute

// attempt is one call of a function.
type attempt struct {
	*delivery
	info   TaskInfo
	beats  *beats
	beyond time.Time // when an outcome is no longer wanted for certain; zero: never
}

// wanted bounds ctx by the time up to which an outcome is wanted.
func (a *attempt) wanted(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.beyond.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, a.beyond)
}

// verdict says what becomes of an attempt.
type verdict struct {
	report *schemas.Report // nil: nothing is reported
	ending ending          // for a verdict without report
	// a limit has passed: the service must know of the start, and writes the rest
	late bool
}

// mayFollow tells whether another attempt may go on from where this one was.
func (v verdict) mayFollow() bool {
	return v.late || v.report == nil && v.ending == giveBack ||
		v.report != nil && v.report.Kind == schemas.ReportFailed && !v.report.Final
}

// attempt runs the function and reports what became of it.
func (s *term) attempt(work, wire context.Context, d *delivery, h handler) {
	a := &attempt{delivery: d, info: infoOf(d)}
	a.info.StartedAt = time.Now()
	limit, late := s.limit(d, a.info.StartedAt)
	if late != nil {
		a.info.Deadline = a.info.StartedAt.Add(limit)
		a.beyond = a.info.Deadline.Add(lateOutcome)
	}
	ctx := deadline.New(work, a.info.Deadline, late)
	defer ctx.Cancel(nil)
	a.beats = newBeats(a, s.conn, ctx.Cancel)
	s.begins(a)
	var news *notice // nil: the start is known
	if !d.begun {
		news = s.announce(wire, a)
	}
	// A function that ends its goroutine (runtime.Goexit, or t.FailNow in a test) comes back
	// through the defer alone.
	var v verdict
	returned := false
	defer func() {
		a.beats.stop()
		if !returned {
			v = verdict{
				report: failed(&Failure{
					Reason: ReasonPanic, Details: schemas.Text("the function ended its goroutine"),
				}),
			}
		}
		if v.mayFollow() {
			a.beats.farewell(wire)
		}
		s.conclude(wire, a, v, news)
	}()
	result, err := a.call(context.WithValue(ctx, contextKey{}, a), h)
	v, returned = a.judge(a.beats.cause(context.Cause(ctx), err == nil), result, err), true
}

// limit gives how long the attempt may take from now on, and the cause of its end; a nil cause
// means that there is no limit. The service's own limit counts by its clock; if its owner lets a
// task begin whose time is over by the estimate of that, all that the task may have is left.
func (s *term) limit(d *delivery, now time.Time) (limit time.Duration, cause error) {
	t := d.task
	if t.StartToClose.Limited() {
		limit, cause = t.StartToClose.Std(), ErrStartToClose
	}
	if t.CloseBy != 0 {
		server := s.clock.Now(now)
		if d.late {
			server = max(t.ScheduledAt, t.DispatchedAt).Time()
		}
		if left := t.CloseBy.Time().Sub(server); cause == nil || left < limit {
			limit, cause = left, ErrCloseBy
		}
	}
	return limit, cause
}

// call calls the function and turns a panic into a failure.
func (a *attempt) call(ctx context.Context, h handler) (result schemas.Payload, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = a.panicked(p)
		}
	}()
	in, err := a.input(ctx)
	if err != nil {
		return nil, err
	}
	return h(ctx, in)
}

// panicked is the failure of a function that panicked, on the goroutine that did.
func (a *attempt) panicked(value any) *Failure {
	// survives an Error or String method that panics, which formatters of a log need not
	text := fmt.Sprint(value)
	stack := string(debug.Stack())
	a.log().WithFields(logrus.Fields{"err": text, "stack": stack}).Error("an activity panicked")
	return &Failure{
		Reason:  ReasonPanic,
		Details: schemas.Text(bound(fmt.Sprintf("%s\n\n%s", text, stack), maxDetails)),
	}
}

// judge is [judge] for errors of any make. Their methods are the function's own code, and a nil
// pointer of an error type is returned easily: a panic in them is one of the function.
func (a *attempt) judge(cause error, result schemas.Payload, err error) (v verdict) {
	defer func() {
		if p := recover(); p != nil {
			v = verdict{report: failed(a.panicked(p))}
		}
	}()
	return judge(cause, result, err)
}

// judge decides what becomes of an attempt, from the cause that ended its context, if any, and what
// the function returned.
func judge(cause error, result schemas.Payload, err error) verdict {
	switch {
	case errors.Is(cause, ErrGone):
		return verdict{ending: acknowledge}
	case err == nil:
		return verdict{report: &schemas.Report{Kind: schemas.ReportSuccess, Result: result}}
	case errors.Is(cause, ErrDrained):
		return verdict{ending: giveBack}
	case errors.Is(cause, ErrStartToClose), errors.Is(cause, ErrCloseBy):
		return verdict{ending: acknowledge, late: true}
	case errors.Is(cause, ErrCanceled) && (errors.Is(err, ErrCanceled) || errors.Is(err, context.Canceled)):
		r := &schemas.Report{Kind: schemas.ReportCanceled}
		if c, ok := errors.AsType[*canceled](err); ok {
			r.Details = c.details
		}
		return verdict{report: r}
	}
	return verdict{report: failed(err)}
}

func failed(err error) *schemas.Report {
	reason, details := failureOf(err)
	_, last := errors.AsType[*final](err)
	return &schemas.Report{
		Kind: schemas.ReportFailed, Reason: reason, Details: details, Final: last,
	}
}
