package timers

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/stats"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
)

// ErrInvalidOptions is wrapped by the error of [Worker.Run] when options are missing or out of
// bounds.
var ErrInvalidOptions = errors.New("invalid timer options")

const defaultNamespace = "default"

// Options of a [Worker]. Partitions and Claims are required; the zero value of every other field is
// its default.
type Options struct {
	// Namespace is served. Defaults to "default".
	Namespace string
	// Partitions is how many the namespace has, as topology.Ensure reports it. Required.
	Partitions int
	// Claims holds the partitions' alarms. Required.
	Claims *claims.Claims
	// Node names this process in the log. Defaults to that of Claims.
	Node string
	// Stats counts the alarms. Defaults to none.
	Stats *stats.Stats
	// Logger receives what operators should know. Defaults to none.
	Logger logrus.FieldLogger
}

// String prints the options as one line of words, for the log.
func (o Options) String() string {
	o = o.withDefaults()
	return fmt.Sprintf("namespace=%s partitions=%d node=%s", o.Namespace, o.Partitions, o.Node)
}

func (o Options) withDefaults() Options {
	o.Namespace = cmp.Or(o.Namespace, defaultNamespace)
	if o.Node == "" && o.Claims != nil {
		o.Node = o.Claims.Node()
	}
	o.Logger = logx.Or(o.Logger)
	return o
}

// validate judges options that have their defaults.
func (o Options) validate() error {
	if err := subject.ValidateNamespace(o.Namespace); err != nil {
		return fmt.Errorf("%w: Namespace: %w", ErrInvalidOptions, err)
	}
	switch {
	case o.Partitions < 1:
		return fmt.Errorf("%w: Partitions is %d: use what topology.Ensure reports, at least 1",
			ErrInvalidOptions, o.Partitions)
	case o.Claims == nil:
		return fmt.Errorf("%w: Claims is missing: open the namespace's claims bucket",
			ErrInvalidOptions)
	}
	return nil
}
