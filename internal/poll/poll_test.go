package poll_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/internal/virtual"
)

// ending is a test that ends at its first failure, unlike the one that it stands in.
type ending struct {
	testing.TB
	failed bool
}

func (e *ending) Helper() {}

func (e *ending) Fatalf(string, ...any) {
	e.failed = true
	runtime.Goexit()
}

func TestUntil(t *testing.T) {
	for name, tc := range map[string]struct {
		after, took time.Duration
		fails       bool
	}{
		"at once":   {0, 0, false},
		"later":     {95 * time.Millisecond, 100 * time.Millisecond, false},
		"too late":  {2 * time.Second, 1010 * time.Millisecond, true},
		"last look": {time.Second, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				began := time.Now()
				e := &ending{TB: t}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					poll.Until(e, time.Second, "it is time", func() bool { return time.Since(began) >= tc.after })
				}()
				<-ended
				if took := time.Since(began); e.failed != tc.fails || took != tc.took {
					t.Errorf("failed: %v after %v, want %v after %v", e.failed, took, tc.fails, tc.took)
				}
			})
		})
	}
}
