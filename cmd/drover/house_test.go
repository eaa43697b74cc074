package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/server"
)

// served is a server of drover that runs in this process.
type served struct {
	server.Info
	stop  context.CancelFunc
	ended chan struct{}
	err   error // after ended
}

// serving starts a server and waits for its ready line. The test stops it at the latest.
func serving(t *testing.T, o server.Options) *served {
	t.Helper()
	s, ready := beginning(t, o)
	select {
	case s.Info = <-ready:
	case <-s.ended:
		t.Fatalf("the server did not begin: %v", s.err)
	}
	return s
}

// beginning starts a server that may wait for something before it is ready.
func beginning(t *testing.T, o server.Options) (*served, <-chan server.Info) {
	t.Helper()
	if o.Logger == nil {
		log := logrus.New()
		log.SetOutput(testWriter{t})
		log.SetLevel(logrus.WarnLevel)
		o.Logger = log
	}
	ready := make(chan server.Info, 1)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	s := &served{stop: stop, ended: make(chan struct{})}
	n, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		s.err = n.Run(ctx)
	}()
	go func() {
		if info, err := n.Ready(context.WithoutCancel(ctx)); err == nil {
			ready <- info
		}
	}()
	t.Cleanup(func() { stop(); <-s.ended })
	return s, ready
}

func (s *served) end(t *testing.T) {
	t.Helper()
	s.stop()
	<-s.ended
	if s.err != nil {
		t.Fatalf("got %v at the end, want nil", s.err)
	}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Helper()
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

func memoryServer() server.Options { return server.Options{Embedded: embedded.Options{Port: -1}} }

// work runs a decider and an activity worker: greet asks for one activity and completes with its result.
func work(t *testing.T, url string) (stop func()) {
	t.Helper()
	c, err := drover.Connect(t.Context(), &drover.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	deciders := c.Deciders(nil)
	deciders.Register("greet", decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
		v, err := task.View(ctx)
		if err != nil {
			return nil, err
		}
		switch status, result, reason := v.Activity("hello"); {
		case status == 0:
			return []schemas.Decision{decider.Schedule("hello", "hello", v.Input(), decider.List("words"))}, nil
		case status == decider.ActivitySucceeded:
			return []schemas.Decision{decider.Complete(result)}, nil
		case status.Closed():
			return []schemas.Decision{decider.Fail(reason, nil)}, nil
		}
		return nil, nil
	}))
	activities := c.Activities(&activity.Options{Lists: []string{"words"}})
	activity.Register(activities, "hello", func(_ context.Context, name string) (string, error) {
		if name == "" {
			return "", activity.Fail("no-name", nil)
		}
		return "hello " + name, nil
	})
	return working(t, c, deciders.Run, activities.Run)
}

// listening is a logger whose warnings and errors are kept.
func listening() (*logrus.Logger, *logtest.Hook) {
	log, kept := logtest.NewNullLogger()
	log.SetLevel(logrus.WarnLevel)
	return log, kept
}

// wantQuiet fails for every warning that the server has logged. Of namespaces that were deleted it
// may say that streams are missing: on a busy machine it hears of the deletion only after that.
// There NATS also says that it was slow.
func wantQuiet(t *testing.T, kept *logtest.Hook, deleted ...string) {
	t.Helper()
	for _, e := range kept.AllEntries() {
		if name, _ := e.Data["namespace"].(string); slices.Contains(deleted, name) &&
			strings.Contains(fmt.Sprint(e.Data["err"]), "no such stream") ||
			strings.HasPrefix(e.Message, "nats: ") &&
				(strings.Contains(e.Message, "took too long") || strings.Contains(e.Message, "processing time")) {
			continue
		}
		t.Errorf("the server logged %v: %s %v", e.Level, e.Message, e.Data)
	}
}

// dialed is a connection of the test's own.
func dialed(t *testing.T, url string) *natsconn.Conn {
	t.Helper()
	conn, err := natsconn.Dial(t.Context(), natsconn.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// working runs workers of a client until stop, which closes the client too, and comes with the end of the test at the latest.
func working(t *testing.T, c *drover.Client, workers ...func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, run := range workers {
		wg.Go(func() {
			if err := run(ctx); err != nil {
				t.Errorf("worker of %s: %v", c.Namespace(), err)
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); wg.Wait(); c.Close() })
	t.Cleanup(stop)
	return stop
}
