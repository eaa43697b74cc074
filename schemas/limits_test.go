package schemas_test

import (
	"math"
	"testing"

	"github.com/droverhq/drover/schemas"
)

// Each duration that somebody may ask for is judged, and named as it is in JSON.
func TestLimitsNameTheirField(t *testing.T) {
	defaults := func(d schemas.Duration) *schemas.ActivityDefaults {
		return &schemas.ActivityDefaults{HeartbeatTimeout: d}
	}
	for _, tt := range []struct {
		field string
		check func(d schemas.Duration) *schemas.Error
	}{
		{"executionStartToCloseTimeout", func(d schemas.Duration) *schemas.Error {
			return (&schemas.StartRequest{ExecutionStartToCloseTimeout: d}).ValidateLimits()
		}},
		{"taskStartToCloseTimeout", func(d schemas.Duration) *schemas.Error {
			return (&schemas.StartRequest{TaskStartToCloseTimeout: d}).ValidateLimits()
		}},
		{"taskScheduleToStartTimeout", func(d schemas.Duration) *schemas.Error {
			return (&schemas.StartRequest{TaskScheduleToStartTimeout: d}).ValidateLimits()
		}},
		{"activityDefaults.heartbeatTimeout", func(d schemas.Duration) *schemas.Error {
			return (&schemas.StartRequest{ActivityDefaults: defaults(d)}).ValidateLimits()
		}},
		{"activityDefaults.startToCloseTimeout", func(d schemas.Duration) *schemas.Error {
			return (&schemas.StartChild{ActivityDefaults: &schemas.ActivityDefaults{StartToCloseTimeout: d}}).ValidateLimits()
		}},
		{"executionStartToCloseTimeout", func(d schemas.Duration) *schemas.Error {
			return (&schemas.StartChild{ExecutionStartToCloseTimeout: d}).ValidateLimits()
		}},
		{"taskStartToCloseTimeout", func(d schemas.Duration) *schemas.Error {
			return (&schemas.ContinueAsNew{TaskStartToCloseTimeout: d}).ValidateLimits()
		}},
		{"activityDefaults.heartbeatTimeout", func(d schemas.Duration) *schemas.Error {
			return (&schemas.ContinueAsNew{ActivityDefaults: defaults(d)}).ValidateLimits()
		}},
		{"scheduleToStartTimeout", func(d schemas.Duration) *schemas.Error {
			return (&schemas.ScheduleActivity{ScheduleToStartTimeout: d}).ValidateLimits()
		}},
		{"scheduleToCloseTimeout", func(d schemas.Duration) *schemas.Error {
			return (&schemas.ScheduleActivity{ScheduleToCloseTimeout: d}).ValidateLimits()
		}},
		{"startDelay", func(d schemas.Duration) *schemas.Error {
			return (&schemas.ScheduleActivity{StartDelay: d}).ValidateLimits()
		}},
		{"retry.initialInterval", func(d schemas.Duration) *schemas.Error {
			return (&schemas.ScheduleActivity{Retry: &schemas.RetryPolicy{InitialInterval: d}}).ValidateLimits()
		}},
		{"retry.maximumInterval", func(d schemas.Duration) *schemas.Error {
			return (&schemas.ScheduleActivity{Retry: &schemas.RetryPolicy{MaximumInterval: d}}).ValidateLimits()
		}},
		{"lease", func(d schemas.Duration) *schemas.Error { return (&schemas.AcquireLock{Lease: d}).ValidateLimits() }},
	} {
		for _, d := range []schemas.Duration{0, 1, schemas.Unlimited, math.MaxInt64} {
			if err := tt.check(d); err != nil {
				t.Errorf("%s of %v: got %v", tt.field, d, err)
			}
		}
		for _, d := range []schemas.Duration{-2, schemas.Seconds(-5), math.MinInt64} {
			want := tt.field + ": it is negative; want seconds, or NONE for no limit"
			if err := tt.check(d); err == nil || err.Message != want || err.Field != tt.field || err.Code != schemas.CodeInvalid {
				t.Errorf("%s of %v: got %+v, want %q", tt.field, d, err, want)
			}
		}
	}
}
