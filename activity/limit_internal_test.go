package activity

import (
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// The nearer of two limits counts, and one of them may be alone.
func TestLimit(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name         string
		startToClose time.Duration
		closeBy      time.Duration // from now on
		late         bool          // by the estimate of the server's clock, which is an hour ahead
		want         time.Duration
		cause        error
	}{
		{name: "none"},
		{name: "start-to-close alone", startToClose: time.Minute, want: time.Minute, cause: ErrStartToClose},
		{name: "schedule-to-close alone", closeBy: time.Hour, want: time.Hour, cause: ErrCloseBy},
		{name: "start-to-close is nearer", startToClose: time.Minute, closeBy: time.Hour, want: time.Minute, cause: ErrStartToClose},
		{name: "schedule-to-close is nearer", startToClose: time.Hour, closeBy: time.Minute, want: time.Minute, cause: ErrCloseBy},
		{name: "schedule-to-close is over by the estimate", startToClose: time.Hour, closeBy: time.Minute, late: true, want: 2 * time.Minute, cause: ErrCloseBy},
	} {
		t.Run(tc.name, func(t *testing.T) {
			task := &schemas.ActivityTask{StartToClose: schemas.Duration(tc.startToClose), ScheduledAt: schemas.At(now.Add(-time.Minute))}
			if tc.closeBy != 0 {
				task.CloseBy = schemas.At(now.Add(tc.closeBy))
			}
			s, server := &term{}, now
			if tc.late {
				server = now.Add(time.Hour)
			}
			s.clock.Observe(server, now)
			limit, cause := s.limit(&delivery{task: task, late: tc.late}, now)
			if limit != tc.want || !errors.Is(cause, tc.cause) {
				t.Errorf("got %v, %v, want %v, %v", limit, cause, tc.want, tc.cause)
			}
		})
	}
}
