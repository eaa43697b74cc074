// Package safecall calls functions of users that only watch.
package safecall

import (
	"fmt"
	"runtime/debug"

	"github.com/sirupsen/logrus"
)

// Tell calls an observer, if there is one. Its panic is logged and goes no further: it would end
// the process, and what was observed is done already.
func Tell[T any](log logrus.FieldLogger, observer func(T), what T) {
	if observer == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			log.WithField("err", fmt.Sprint(p)).WithField("stack", string(debug.Stack())).
				Error("an Observer panicked")
		}
	}()
	observer(what)
}
