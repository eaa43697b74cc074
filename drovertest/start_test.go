package drovertest_test

import (
	"context"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// In real time everybody can connect, and finds the server at the same address after a restart.
func TestStart(t *testing.T) {
	e := drovertest.Start(t, &drovertest.Options{Partitions: 2})
	u, err := url.Parse(e.URL())
	if err != nil || u.Hostname() != "127.0.0.1" || u.Port() == "" {
		t.Fatalf("got address %q, %v, want a port on loopback", e.URL(), err)
	}
	c, err := drover.Connect(t.Context(), &drover.Options{URL: e.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	serve(e)
	var attempts atomic.Int32
	labour(e, func(_ context.Context, in string) (string, error) {
		attempts.Add(1)
		return in + " done", nil
	})
	for i, bounce := range []func(time.Duration){nil, e.Restart, e.Crash} {
		if bounce != nil {
			before := e.URL()
			bounce(10 * time.Millisecond)
			if after := e.URL(); after != before {
				t.Fatalf("the address was %s and is %s after the restart", before, after)
			}
		}
		run, err := c.Start(t.Context(), "work", "input", nil)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		e.Result(run, &got)
		if got != "input done" || attempts.Load() != int32(i+1) {
			t.Fatalf("got %q after %d attempts", got, attempts.Load())
		}
	}
	e.Sleep(10 * time.Millisecond)
	e.Await(start(t, e, "nap", "n").ID, schemas.EventTimerScheduled)
	if got := e.History("n").String(); !strings.HasSuffix(got, "5 TimerScheduled nap") {
		t.Fatalf("got history\n%s", got)
	}
}

// Several at a time do not meet.
func TestStartTwice(t *testing.T) {
	one, two := drovertest.Start(t, nil), drovertest.Start(t, nil)
	if one.URL() == two.URL() {
		t.Fatalf("both are at %s", one.URL())
	}
	serve(one)
	serve(two)
	start(t, one, "nap", "n")
	start(t, two, "nap", "n")
}

func BenchmarkStart(b *testing.B) {
	e := drovertest.Start(b, nil)
	serve(e)
	for b.Loop() {
		run, err := e.Client.Start(b.Context(), "nap", nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := run.Signal(b.Context(), "wake", "up"); err != nil {
			b.Fatal(err)
		}
		e.Result(run, nil)
	}
}

// Who has no workflow id yet either can repeat a start all the same, also from another process.
func TestStartIsRepeatedByItsRequestIDAlone(t *testing.T) { // P-5
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		start := func() *drover.Run {
			run, err := e.Client.Start(t.Context(), "order", nil, &drover.StartOptions{RequestID: "q 1"})
			if err != nil {
				t.Fatal(err)
			}
			return run
		}
		first := start()
		if again := start(); !first.Started() || again.Started() || again.ID != first.ID || again.RunID != first.RunID {
			t.Fatalf("got run %q %q, started %t, want %q %q of the first start", again.ID, again.RunID, again.Started(), first.ID, first.RunID)
		}
		var plain schemas.StartResponse // as those get who have NATS alone
		m, err := natsconn.Of(e.Client).Request(t.Context(), "drover."+e.Client.Namespace()+".api.start", nil, []byte(`{"type": "order", "requestId": "q 1"}`))
		if err == nil {
			err = schemas.Unmarshal(m.Data, &plain)
		}
		if err != nil || plain.Error != nil || plain.Started || plain.WorkflowID != first.ID || plain.Run != first.RunID {
			t.Fatalf("got %+v, %v, want %q %q of the first start", plain, err, first.ID, first.RunID)
		}
	})
}
