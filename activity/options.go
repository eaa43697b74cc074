package activity

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logs"
)

// ErrInvalidOptions is wrapped by the error of [Worker.Run] when options are missing or out of
// bounds.
var ErrInvalidOptions = errors.New("invalid activity options")

const (
	defaultNamespace    = "default"
	defaultConcurrency  = 100
	defaultDrainTimeout = 5 * time.Minute
	defaultStartedAfter = 50 * time.Millisecond
	defaultKeepAlive    = 3 * time.Second
	minKeepAlive        = 10 * time.Millisecond
	// maxKeepAlive is half the AckWait of a list's consumer: one lost message must not cost the
	// lease.
	maxKeepAlive = 5 * time.Second
)

// Options of a [Worker]. Lists is required; the zero value of every other field is its default.
type Options struct {
	// Namespace is where the lists are. Defaults to "default".
	Namespace string
	// Lists are the task lists to take work from: letters, digits, "-" and "_". Required, at least
	// one.
	Lists []string
	// Identity names this worker in histories, and the subject on which it is told to cancel: 1 to
	// 256 bytes of text, different for each process. Workers of one process may share it. Defaults
	// to host name and process id.
	Identity string
	// Concurrency is how many activities run at a time in this worker. The lists share it evenly,
	// so that none can starve another; for other shares use several workers. At least one for each
	// list. Defaults to 100.
	Concurrency int
	// DrainTimeout is how long activities that run may go on after Run's context has ended.
	// Defaults to 5 minutes; give a process manager that kills sooner less.
	DrainTimeout time.Duration
	// StartedAfter is how long an activity may run before its start is reported by a message of its
	// own. Defaults to 50 ms.
	StartedAfter time.Duration
	// KeepAlive is how often the lease on a task is extended, from 10 ms to 5 s. Defaults to 3 s.
	KeepAlive time.Duration
	// Logger receives what goes wrong at warning level and above, with the stacks of panics, and
	// what goes on at debug level, never a payload. Defaults to one that writes warnings and errors
	// to stderr: lines on a terminal, JSON elsewhere.
	Logger logrus.FieldLogger
}

// String prints the options as one line of words, for the log.
func (o Options) String() string {
	o = o.withDefaults()
	return fmt.Sprintf(
		"namespace=%s lists=%s identity=%s concurrency=%d drain-timeout=%v started-after=%v keep-alive=%v",
		o.Namespace,
		strings.Join(o.Lists, ","),
		o.Identity,
		o.Concurrency,
		o.DrainTimeout,
		o.StartedAfter,
		o.KeepAlive,
	)
}

func (o Options) withDefaults() Options {
	o.Namespace = cmp.Or(o.Namespace, defaultNamespace)
	o.Lists = slices.Clone(o.Lists)
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown-host"
		}
		o.Identity = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	o.Concurrency = cmp.Or(o.Concurrency, max(defaultConcurrency, len(o.Lists)))
	o.DrainTimeout = cmp.Or(o.DrainTimeout, defaultDrainTimeout)
	o.StartedAfter = cmp.Or(o.StartedAfter, defaultStartedAfter)
	o.KeepAlive = cmp.Or(o.KeepAlive, defaultKeepAlive)
	o.Logger = logs.Or(o.Logger)
	return o
}

// validate judges options that have their defaults.
func (o Options) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %w", ErrInvalidOptions, fmt.Errorf(format, args...))
	}
	if err := subject.ValidateNamespace(o.Namespace); err != nil {
		return bad("Namespace: %w", err)
	}
	if len(o.Lists) == 0 {
		return bad("Lists is empty: name the task lists that this worker takes work from")
	}
	for i, list := range o.Lists {
		if err := subject.ValidateName("Lists", list); err != nil {
			return bad("%w", err)
		}
		if slices.Contains(o.Lists[:i], list) {
			return bad("Lists names %q twice: name each list once", list)
		}
	}
	if err := subject.ValidateID("Identity", o.Identity); err != nil {
		return bad("%w", err)
	}
	switch {
	case o.Concurrency < len(o.Lists):
		return bad("Concurrency is %d for %d lists: use at least one for each list, or 0 for %d",
			o.Concurrency, len(o.Lists), defaultConcurrency)
	case o.DrainTimeout < 0:
		return bad("DrainTimeout is %v: use more than 0, or 0 for %v",
			o.DrainTimeout, defaultDrainTimeout)
	case o.StartedAfter < 0:
		return bad("StartedAfter is %v: use more than 0, or 0 for %v",
			o.StartedAfter, defaultStartedAfter)
	case o.KeepAlive < minKeepAlive || o.KeepAlive > maxKeepAlive:
		return bad("KeepAlive is %v: use %v to %v, or 0 for %v",
			o.KeepAlive, minKeepAlive, maxKeepAlive, defaultKeepAlive)
	}
	return nil
}

// share is the part of Concurrency that the i-th list gets.
func (o Options) share(i int) int {
	n := o.Concurrency / len(o.Lists)
	if i < o.Concurrency%len(o.Lists) {
		n++
	}
	return n
}
