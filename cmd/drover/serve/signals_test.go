package serve

import (
	"context"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/internal/virtual"
)

func TestSignals(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		signals := make(chan os.Signal, 4)
		ctx, hurry, done := heed(t.Context(), signals)
		defer done()
		cut := func() bool {
			synctest.Wait()
			select {
			case <-hurry:
				return true
			default:
				return false
			}
		}
		signals <- syscall.SIGTERM
		<-ctx.Done()
		if got := context.Cause(ctx); got.Error() != "signal terminated" {
			t.Fatalf("got cause %v", got)
		}
		if cut() {
			t.Fatal("the first signal cuts the stop short")
		}
		time.Sleep(Doubled - 1)
		signals <- syscall.SIGTERM
		if cut() {
			t.Fatal("a doubled signal cuts the stop short")
		}
		time.Sleep(time.Nanosecond)
		signals <- syscall.SIGINT
		if !cut() {
			t.Fatal("the second signal does not cut the stop short")
		}
	})
}
