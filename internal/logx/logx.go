// Package logx has the logger of those who were given none.
package logx

import (
	"io"

	"github.com/sirupsen/logrus"
)

// Or returns log, or one that says nothing if that is nil.
func Or(log logrus.FieldLogger) logrus.FieldLogger {
	if log != nil {
		return log
	}
	l := logrus.New()
	l.SetOutput(io.Discard)
	l.SetLevel(logrus.PanicLevel)
	return l
}
