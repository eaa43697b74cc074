package decider

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logs"
	"github.com/sirupsen/logrus"
)

const (
	defaultNamespace    = "default"
	defaultConcurrency  = 64
	defaultDrainTimeout = 30 * time.Second
	defaultStickyRuns   = 1000
	defaultStickyBytes  = 64 << 20
	maxIdentity         = 256
	off                 = -1
)

// Options of [New]. The zero value, or nil, takes every default.
type Options struct {
	// Namespace is the tenant whose runs are decided. Defaults to "default".
	Namespace string
	// Identity names the worker in histories, up to 256 bytes. Defaults to "host:pid".
	Identity string
	// Concurrency is how many Decides run at once. Defaults to 64.
	Concurrency int
	// Timeout bounds one Decide: its context then ends with ErrTimeout, and the broker is told.
	// Zero leaves only the deadline that the broker gives each task. Defaults to 0.
	Timeout time.Duration
	// StickyCache is the number of runs that are kept in memory, so that the next task of the run
	// needs no read, and [Task.Continues] tells whether what a decider keeps of it is still true. -1
	// switches it off: the run's next task may then go to any worker. Defaults to 1000.
	StickyCache int
	// StickyBytes bounds the memory of the kept histories, as estimated from their size on the
	// wire. The histories of the runs unused for longest are forgotten first; the runs are not.
	// Defaults to 64 MiB.
	StickyBytes int
	// DrainTimeout is how long a stopping worker lets running Decides finish before it cancels
	// them. -1 cancels at once. Defaults to 30 s.
	DrainTimeout time.Duration
	// Logger receives what goes wrong, with the stacks of panics. Payloads are never logged.
	// Defaults to one that writes warnings and errors to stderr: lines on a terminal, JSON
	// elsewhere.
	Logger logrus.FieldLogger
	// Observer is told of each task that was handled, for metrics. It is called by many goroutines,
	// and must not block or end one. Its panics are logged. Defaults to none.
	Observer func(Observation)
}

// String prints the options as one line of words, for the log.
func (o Options) String() string {
	o = o.withDefaults()
	timeout, sticky, drain := "task", "off", "none"
	if o.Timeout > 0 {
		timeout = o.Timeout.String()
	}
	if o.StickyCache > 0 {
		sticky = fmt.Sprintf("%d/%dB", o.StickyCache, o.StickyBytes)
	}
	if o.DrainTimeout > 0 {
		drain = o.DrainTimeout.String()
	}
	return fmt.Sprintf("namespace=%s identity=%s concurrency=%d timeout=%s sticky=%s drain=%s",
		o.Namespace, o.Identity, o.Concurrency, timeout, sticky, drain)
}

func (o Options) withDefaults() Options {
	o.Namespace = cmp.Or(o.Namespace, defaultNamespace)
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		o.Identity = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	o.Concurrency = cmp.Or(o.Concurrency, defaultConcurrency)
	o.StickyCache = cmp.Or(o.StickyCache, defaultStickyRuns)
	o.StickyBytes = cmp.Or(o.StickyBytes, defaultStickyBytes)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, defaultDrainTimeout)
	o.Logger = logs.Or(o.Logger)
	return o
}

// validate judges options that have their defaults.
func (o Options) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalidOptions, fmt.Sprintf(format, args...))
	}
	if err := subject.ValidateNamespace(o.Namespace); err != nil {
		return bad("Namespace: %v", err)
	}
	switch {
	case len(o.Identity) > maxIdentity:
		return bad("Identity has %d bytes: use up to %d, or leave it out for host:pid",
			len(o.Identity), maxIdentity)
	case o.Concurrency < 1:
		return bad("Concurrency is %d: use 1 or more, or 0 for %d",
			o.Concurrency, defaultConcurrency)
	case o.Timeout < 0:
		return bad("Timeout is %v: use a positive duration, or 0 for the deadline of each task",
			o.Timeout)
	case o.StickyCache < off:
		return bad("StickyCache is %d: use 1 or more, 0 for %d, or -1 for none",
			o.StickyCache, defaultStickyRuns)
	case o.StickyBytes < 0:
		return bad(
			"StickyBytes is %d: use a positive number, or 0 for %d; StickyCache -1 switches the cache off",
			o.StickyBytes, defaultStickyBytes)
	case o.DrainTimeout < off:
		return bad("DrainTimeout is %v: use a positive duration, 0 for %v, or -1 to cancel at once",
			o.DrainTimeout, defaultDrainTimeout)
	}
	return nil
}
