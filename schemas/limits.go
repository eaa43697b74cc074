package schemas

import (
	"math"
	"strings"
)

// namedLimit is a duration that somebody asks for, and its field.
type namedLimit struct {
	field string
	value Duration
}

// validateLimits checks that none of the limits is negative but [Unlimited]. Any other is good, the
// longest too: [Timestamp.Add] does not wrap around.
func validateLimits(prefix string, all ...namedLimit) *Error {
	for _, l := range all {
		if l.value < 0 && l.value != Unlimited {
			return invalidType(prefix+l.field, "it is negative; want seconds, or NONE for no limit")
		}
	}
	return nil
}

// ValidateLimits checks the durations of the request, those of the defaults of its activities
// included. The error names the field.
func (q *StartRequest) ValidateLimits() *Error {
	return validateRun(q.ActivityDefaults,
		namedLimit{"executionStartToCloseTimeout", q.ExecutionStartToCloseTimeout},
		namedLimit{"taskStartToCloseTimeout", q.TaskStartToCloseTimeout},
		namedLimit{"taskScheduleToStartTimeout", q.TaskScheduleToStartTimeout})
}

// ValidateLimits checks the durations of the decision, as [StartRequest.ValidateLimits] does.
func (a *StartChild) ValidateLimits() *Error {
	return validateRun(a.ActivityDefaults,
		namedLimit{"executionStartToCloseTimeout", a.ExecutionStartToCloseTimeout},
		namedLimit{"taskStartToCloseTimeout", a.TaskStartToCloseTimeout})
}

// ValidateLimits checks the durations of the decision, as [StartRequest.ValidateLimits] does.
func (a *ContinueAsNew) ValidateLimits() *Error {
	return validateRun(a.ActivityDefaults,
		namedLimit{"executionStartToCloseTimeout", a.ExecutionStartToCloseTimeout},
		namedLimit{"taskStartToCloseTimeout", a.TaskStartToCloseTimeout})
}

func validateRun(d *ActivityDefaults, limits ...namedLimit) *Error {
	if err := validateLimits("", limits...); err != nil || d == nil {
		return err
	}
	return d.validateLimits("activityDefaults.")
}

// ValidateLimits checks the durations of the decision, and how its attempts follow each other. The
// error names the field.
func (a *ScheduleActivity) ValidateLimits() *Error {
	err := validateLimits("", namedLimit{"scheduleToStartTimeout", a.ScheduleToStartTimeout},
		namedLimit{"startToCloseTimeout", a.StartToCloseTimeout},
		namedLimit{"scheduleToCloseTimeout", a.ScheduleToCloseTimeout},
		namedLimit{"heartbeatTimeout", a.HeartbeatTimeout}, namedLimit{"startDelay", a.StartDelay})
	if err == nil && a.MaximumInterruptions < UnlimitedInterruptions {
		err = invalidType("maximumInterruptions",
			"it is %d; want 1 or more, 0 for %d, or %d for no limit",
			a.MaximumInterruptions, DefaultMaximumInterruptions, UnlimitedInterruptions)
	}
	if err != nil || a.Retry == nil {
		return err
	}
	return a.Retry.validateLimits("retry.")
}

// ValidateLimits checks the lease. The error names the field.
func (a *AcquireLock) ValidateLimits() *Error {
	return validateLimits("", namedLimit{"lease", a.Lease})
}

func (d *ActivityDefaults) validateLimits(prefix string) *Error {
	return validateLimits(prefix, namedLimit{"scheduleToStartTimeout", d.ScheduleToStartTimeout},
		namedLimit{"startToCloseTimeout", d.StartToCloseTimeout},
		namedLimit{"scheduleToCloseTimeout", d.ScheduleToCloseTimeout},
		namedLimit{"heartbeatTimeout", d.HeartbeatTimeout})
}

func (r *RetryPolicy) validateLimits(prefix string) *Error {
	switch {
	case !r.validBackoff():
		return invalidType(prefix+"backoffCoefficient",
			"it is %v; want a number from 1 to %d, or 0 for 2",
			r.BackoffCoefficient, maxBackoffCoefficient)
	case r.MaximumAttempts < 0:
		return invalidType(prefix+"maximumAttempts", "it is %d; want 1 or more, or 0 for no limit",
			r.MaximumAttempts)
	}
	return validateLimits(prefix, namedLimit{"initialInterval", r.InitialInterval},
		namedLimit{"maximumInterval", r.MaximumInterval})
}

// Pause is the wait after the n-th attempt: initial × coefficientⁿ⁻¹, capped. Defaults: 1 s, 2, 100 ×
// the initial. A cap of NONE is none, an initial interval of NONE is the default: without a wait the
// retries would be a loop.
func (r *RetryPolicy) Pause(n int) Duration {
	const longest = float64(1 << 62) // 146 years; twice as much has no Duration
	initial, factor, top := r.InitialInterval, r.BackoffCoefficient, longest
	if !initial.Limited() {
		initial = Seconds(1)
	}
	if factor == 0 || math.IsNaN(factor) {
		factor = 2
	}
	if r.MaximumInterval == 0 {
		top = 100 * float64(initial)
	} else if r.MaximumInterval.Limited() {
		top = float64(r.MaximumInterval)
	}
	return Duration(min(float64(initial)*math.Pow(max(factor, 1), float64(n-1)), top, longest))
}

// MaxAttributes bounds the names and values of a run's attributes together, in bytes: they stand in
// the headers of its records.
const MaxAttributes = 32 << 10

// AttributesSize is what [MaxAttributes] bounds.
func AttributesSize(attributes map[string]string) (n int) {
	for name, value := range attributes {
		n += len(name) + len(value)
	}
	return n
}

// WordsSize is about what a list of words, such as tags or ids, takes in a message, in bytes.
func WordsSize(words []string) (n int) {
	for _, word := range words {
		n += len(word) + 3
	}
	return n
}

// ValidateTags checks how many tags there are, and how long they are.
func ValidateTags(tags []string) *Error {
	if len(tags) > MaxTags {
		return Errorf(CodeInvalid, "tagList: %d tags; want at most %d", len(tags), MaxTags).
			InField("tagList")
	}
	for _, tag := range tags {
		if err := ValidateLength("tagList", tag); err != nil {
			return err
		}
	}
	return nil
}

// ValidateLength refuses a word that is longer than an id may be. It may be empty. Words are
// remembered by runs, or stand in the headers of their records: larger ones would not fit there.
func ValidateLength(field, word string) *Error {
	if len(word) > MaxIDLen {
		return Errorf(CodeInvalid, "%s: %d bytes; want at most %d", field, len(word), MaxIDLen).
			InField(field)
	}
	return nil
}

// ValidateSignalRequestID is [ValidateLength] for the request id of a signal, which stands in a
// header of NATS: there white space at an end is cut off, and line breaks become spaces. A repeat
// of such an id would not be known again, or another one be taken for its repeat.
func ValidateSignalRequestID(field, id string) *Error {
	if err := ValidateLength(field, id); err != nil {
		return err
	}
	if strings.Trim(id, " \t") != id || strings.ContainsAny(id, "\r\n") {
		return Errorf(CodeInvalid,
			"%s: %q has white space at an end, or a line break, which the header of a signal "+
				"does not keep; want an id without", field, id).InField(field)
	}
	return nil
}
