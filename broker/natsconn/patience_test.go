package natsconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/internal/virtual"
)

// What passes is waited for, for a minute; what does not ends the start at once, with the way out.
func TestStartIsPatient(t *testing.T) {
	silent := logrus.New()
	silent.SetOutput(io.Discard)
	var unavailable error = &APIError{
		Code: 503, ErrCode: 10008,
		Description: "JetStream system temporarily unavailable",
	}
	for name, tc := range map[string]struct {
		err   error
		times int
		took  time.Duration // 0: it must fail at once
	}{
		"no leader":       {fmt.Errorf("read stream: %w", unavailable), 3, 3 * time.Second},
		"no answer":       {fmt.Errorf("read stream: %w", context.DeadlineExceeded), 5, 5 * time.Second},
		"no connection":   {ErrDisconnected, 1, time.Second},
		"no stream":       {ErrNoStream, 1, 0},
		"no leader comes": {unavailable, 1000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				began, tries := time.Now(), 0
				got, err := Retry(t.Context(), silent, func(context.Context) (int, error) {
					if tries++; tries <= tc.times {
						return 0, tc.err
					}
					return 7, nil
				})
				took := time.Since(began)
				switch {
				case tc.took > 0 && (err != nil || got != 7 || took != tc.took):
					t.Errorf("got %d, %v after %v; want 7 after %v", got, err, took, tc.took)
				case tc.took == 0 &&
					(!errors.Is(err, tc.err) || !strings.Contains(err.Error(), "make the namespace first")):
					t.Errorf("got %v, want %v and the way out", err, tc.err)
				case tc.times == 1000 && (took < startPatience || took > startPatience+2*time.Second),
					tc.took == 0 && tc.times == 1 && took > 0:
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}
