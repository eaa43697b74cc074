package drovertest

import (
	"cmp"
	"fmt"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/subject"
)

const (
	defaultNamespace  = "default"
	defaultPartitions = 1
	defaultReplays    = 3
)

// Options of [Run] and [Start]. The zero value, or nil, takes every default.
type Options struct {
	// Namespace is served and is that of the client: up to 64 letters, digits, '-' and '_'.
	// Defaults to "default".
	Namespace string
	// Partitions is the number of shares of all workflow ids, 1 to 256. Workflows behave the same
	// with any; fewer start faster. Defaults to 1.
	Partitions int
	// Logger receives what server, client and workers say. Defaults to the log of the test, from
	// warnings on.
	Logger logrus.FieldLogger
	// Seed is that of a coin that decides after which decisions a run of workflow code leaves the
	// memory of its worker: after about half of them, so that code which does something else when it
	// is called again is found. The log of a test that fails names the seed. Defaults to another one
	// each time; negative: no run leaves the memory by that.
	Seed int64
	// Replays is how often each history of workflow code is replayed when the test ends; see
	// [Replay]. Inputs are compared, too, if one worker of the test has the code. Defaults to 3,
	// since the order of maps differs each time; negative: not at all, for tests of code that is to
	// differ.
	Replays int
}

// String prints the options as one line of words, for the log.
func (o Options) String() string {
	o = o.withDefaults()
	return fmt.Sprintf("namespace=%s partitions=%d", o.Namespace, o.Partitions)
}

func (o Options) withDefaults() Options {
	o.Namespace = cmp.Or(o.Namespace, defaultNamespace)
	o.Partitions = cmp.Or(o.Partitions, defaultPartitions)
	o.Replays = cmp.Or(o.Replays, defaultReplays)
	return o
}

// validate judges options that have their defaults.
func (o Options) validate() error {
	if err := subject.ValidateNamespace(o.Namespace); err != nil {
		return fmt.Errorf("Options.Namespace: %w", err)
	}
	if o.Partitions < 1 || o.Partitions > subject.MaxPartitions {
		return fmt.Errorf("Options.Partitions is %d: use 1 to %d, or 0 for %d",
			o.Partitions, subject.MaxPartitions, defaultPartitions)
	}
	return nil
}
