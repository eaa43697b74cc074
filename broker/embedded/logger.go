package embedded

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/sirupsen/logrus"
)

// bridge gives the server's log lines to logrus. Warnings and errors keep their level; notices,
// some twenty at every start, become debug lines.
type bridge struct {
	log logrus.FieldLogger
	// the first one; the server returns from Start without an error after it
	fatal atomic.Pointer[string]
}

func line(format string, v []any) string {
	return "nats: " + strings.TrimSpace(fmt.Sprintf(format, v...))
}

func (b *bridge) Noticef(format string, v ...any) { b.log.Debug(line(format, v)) }
func (b *bridge) Warnf(format string, v ...any)   { b.log.Warn(line(format, v)) }
func (b *bridge) Errorf(format string, v ...any)  { b.log.Error(line(format, v)) }

// Debugf and Tracef are never called: both are switched off, as they print payloads.
func (b *bridge) Debugf(string, ...any) {}
func (b *bridge) Tracef(string, ...any) {}

// Fatalf does not end the process, as the server's own logger does: an embedding program returns an
// error.
func (b *bridge) Fatalf(format string, v ...any) {
	msg := fmt.Sprintf(format, v...)
	b.fatal.CompareAndSwap(nil, &msg)
	b.log.Error("nats: " + msg)
}
