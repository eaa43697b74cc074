package workflow_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
)

// A workflow logs to where its worker does, and a replay is silent.
func TestLog(t *testing.T) {
	var mu sync.Mutex
	var text bytes.Buffer
	log := logrus.New()
	log.SetOutput(&locked{&mu, &text})
	drovertest.Run(t, &drovertest.Options{Logger: log}, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		workflow.Implement(w, any1, func(ctx workflow.Context, _ string) (string, error) {
			workflow.Log(ctx).WithField("colour", "blue").Info("it begins")
			err := workflow.Sleep(ctx, time.Minute)
			workflow.Log(ctx).Info("it ends")
			return "", err
		}, &workflow.Options{Kept: -1})
		e.Go(w)
		run, err := e.Client.Start(t.Context(), "any", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		e.Wait(run)
	})
	mu.Lock()
	defer mu.Unlock()
	for part, want := range map[string]int{"it begins": 1, "it ends": 1, "colour=blue": 1, "workflowType=any": 2} {
		if n := strings.Count(text.String(), part); n != want {
			t.Errorf("%q is there %d times, want %d: %s", part, n, want, &text)
		}
	}
}

// locked is a buffer for several goroutines.
type locked struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

// Write implements io.Writer.
func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}
