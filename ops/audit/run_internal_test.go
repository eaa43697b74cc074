package audit

import (
	"errors"
	"testing"
	"time"
)

// Full passes take a twentieth of the time at most, and one that failed does not wait for its turn.
func TestFullPassesLeaveRoom(t *testing.T) {
	for _, tc := range []struct {
		took, want time.Duration
		err        error
	}{
		{time.Second, 10 * time.Minute, nil},
		{time.Minute, 20 * time.Minute, nil},
		{time.Second, 20 * time.Second, errors.New("no answer")},
		{time.Minute, 20 * time.Minute, errors.New("no answer")},
	} {
		if got := untilFull(tc.took, 10*time.Minute, tc.err); got != tc.want {
			t.Errorf("after %v (%v): got %v, want %v", tc.took, tc.err, got, tc.want)
		}
	}
}
