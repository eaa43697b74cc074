// Package logs has the logger of those who were given none, and the form of log lines: for a person
// on a terminal, JSON elsewhere.
package logs

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// fieldStack is the field with the stack of a panic.
const fieldStack = "stack"

// Or returns log, or one that writes warnings and errors to stderr if that is nil. All who have
// none share one.
func Or(log logrus.FieldLogger) logrus.FieldLogger {
	if log != nil {
		return log
	}
	return std()
}

var std = sync.OnceValue(func() logrus.FieldLogger { return New(os.Stderr) })

// New returns a logger that writes warnings and errors to w.
func New(w io.Writer) *logrus.Logger {
	l := logrus.New()
	l.SetOutput(w)
	l.SetLevel(logrus.WarnLevel)
	if Terminal(w) {
		l.SetFormatter(Text(true))
	} else {
		l.SetFormatter(JSON())
	}
	return l
}

// Terminal tells whether a person reads along.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// JSON is one document a line.
func JSON() logrus.Formatter {
	return &logrus.JSONFormatter{TimestampFormat: time.RFC3339Nano, DisableHTMLEscape: true}
}

// Text is a line for each entry, and the stack of a panic as lines after it.
func Text(colors bool) logrus.Formatter {
	return &text{logrus.TextFormatter{
		FullTimestamp: true, TimestampFormat: "2006-01-02T15:04:05.000Z07:00", ForceColors: colors,
		DisableColors: !colors,
	}}
}

type text struct{ line logrus.TextFormatter }

// Format implements [logrus.Formatter].
func (t *text) Format(e *logrus.Entry) ([]byte, error) {
	stack, ok := e.Data[fieldStack].(string)
	if !ok {
		return t.line.Format(e)
	}
	bare := *e
	bare.Data = make(logrus.Fields, len(e.Data))
	for k, v := range e.Data {
		if k != fieldStack {
			bare.Data[k] = v
		}
	}
	out, err := t.line.Format(&bare)
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(bytes.Clone(out))
	for line := range strings.Lines(strings.TrimSpace(stack)) {
		b.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
	}
	return b.Bytes(), nil
}
