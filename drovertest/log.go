package drovertest

import (
	"strings"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"
)

// testLog writes to the log of a test until the test ends: testing panics on a later line, which a
// goroutine that the test has left over may well write.
type testLog struct {
	mu sync.Mutex
	t  testing.TB // nil when the test has ended
}

// Write implements io.Writer.
func (l *testLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.t != nil {
		l.t.Log(strings.TrimSpace(string(b)))
	}
	return len(b), nil
}

func (l *testLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.t = nil
}

// logger returns the logger to use, and what ends it.
func (o Options) logger(t testing.TB) (log logrus.FieldLogger, end func()) {
	if o.Logger != nil {
		return o.Logger, func() {}
	}
	sink := &testLog{t: t}
	l := logrus.New()
	l.SetOutput(sink)
	l.SetLevel(logrus.WarnLevel)
	l.SetFormatter(&logrus.TextFormatter{DisableColors: true})
	return l, sink.close
}
