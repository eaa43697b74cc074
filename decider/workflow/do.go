package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow/internal/machine"
	"github.com/droverhq/drover/schemas"
)

// Do calls a function in this worker, records what it returns, and goes on once the history has
// that: a replay does not call it again. It is for short work that needs no worker of its own, such
// as a query or a request:
//
//	rate, err := workflow.Do(ctx, "rate", func(ctx context.Context) (float64, error) {
//		return bank.Rate(ctx, "EUR")
//	})
//
// The function may do anything but use the workflow ([Log] apart). It is called at least once, and
// again if the worker is lost meanwhile: [StepInfo] has a key by which others recognise that. Its
// context ends when the scope is canceled, when the run leaves the memory of its worker, or after a
// minute; what takes longer is for an activity. The value must have a JSON form.
//
// An error of the function is recorded, too, and returned as a [*CallError]; if it is a fault,
// [errors.Is] finds that. [StepRetry] repeats the function instead.
func Do[T any](
	ctx Context, name string, fn func(context.Context) (T, error), opts ...StepOption,
) (v T, err error) {
	var o step
	for _, opt := range opts {
		opt(&o)
	}
	attempt := 1
	s := &machine.Step{Of: name, Quick: o.quick, Do: func(
		c context.Context, id string,
	) (*machine.Record, error) {
		v, err := fn(context.WithValue(c, stepKey{}, Step{
			Name: id, Key: ctx.run.info.Run + "/" + id, Attempt: attempt,
		}))
		if err != nil {
			return o.failed(err, attempt), nil
		}
		b, err := json.Marshal(&v)
		if err != nil {
			return nil, fmt.Errorf("Do %q: %T has no JSON form: %w", name, v, err)
		}
		return &machine.Record{OK: b}, nil
	}}
	for ; ; attempt++ {
		f := ctx.run.m.Do(ctx.scope, s)
		if err := ctx.run.m.Wait(f.Name, f); err != nil {
			return v, err
		}
		pause := f.Outcome().Retry
		if pause == 0 {
			return stepEnded[T](ctx, name, f)
		}
		if err := Sleep(ctx, pause.Std()); err != nil {
			return v, err
		}
	}
}

func stepEnded[T any](ctx Context, name string, f *machine.Future) (v T, err error) {
	if err := ended(ctx, name, f); err != nil {
		return v, err
	}
	if err := json.Unmarshal(f.Outcome().Result, &v); err != nil {
		panic(fmt.Sprintf("Do %q: the history has %s, which is no %T: %v",
			name, f.Outcome().Result, v, err))
	}
	return v, nil
}

// Step says to a function of [Do] who it is.
type Step struct {
	Name string // such as rate#2
	// Key is the same whenever the function is called for this step, and differs from that of any
	// other. Give it to services that recognise repeats.
	Key string
	// Attempt counts from 1 what [StepRetry] repeats.
	Attempt int
}

type stepKey struct{}

// StepInfo returns what is known of the step that ctx belongs to. For any other context it is the
// zero value.
func StepInfo(ctx context.Context) Step {
	s, _ := ctx.Value(stepKey{}).(Step)
	return s
}

// StepOption says how [Do] does a step.
type StepOption func(*step)

type step struct {
	quick bool
	retry *schemas.RetryPolicy
}

// Quick is for steps of some milliseconds, such as a look into a cache: the code goes on at once,
// and the step is recorded with what the code asks for next. So quick steps one after the other
// cost one decision, and all of them are done again if the worker is lost before that. One quick
// step of a run is done at a time, and its context ends after 400 ms.
func Quick() StepOption { return func(s *step) { s.quick = true } }

// StepRetry repeats a step that fails, unless by a fault, by the policy of an activity. The pauses
// are timers of the run.
func StepRetry(p schemas.RetryPolicy) StepOption {
	p.NonRetryable = slices.Clone(p.NonRetryable)
	if err := (&schemas.ScheduleActivity{Retry: &p}).ValidateLimits(); err != nil {
		panic("StepRetry: " + err.Message)
	}
	return func(s *step) { s.retry = &p }
}

// failed is what is recorded of an attempt that has failed.
func (s *step) failed(err error, attempt int) *machine.Record {
	if fault, ok := contract.AsFault(err); ok {
		return &machine.Record{Fault: fault.Reason, Details: fault.Details}
	}
	r := &machine.Record{Fault: text(err)}
	if p := s.retry; p != nil && (p.MaximumAttempts == 0 || attempt < p.MaximumAttempts) &&
		!slices.Contains(p.NonRetryable, r.Fault) {
		r.Retry = max(p.Pause(attempt), schemas.Duration(time.Millisecond))
	}
	return r
}

// text is that of an error, if it has one.
func text(err error) string {
	const most = 1000
	s := err.Error()
	if s == "" {
		return fmt.Sprintf("%T", err)
	}
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
