package nodes

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/internal/logx"
)

const (
	defaultHeartbeat = 2 * time.Second
	minHeartbeat     = 100 * time.Millisecond
	maxHeartbeat     = time.Minute
	defaultThreshold = 10 * time.Second
	defaultForget    = 24 * time.Hour
	// beats is how many heartbeats of a node may be missing before it can be called silent,
	// whatever the threshold.
	beats = 3
)

// Reasons for which a call fails. Compare with errors.Is.
var (
	// ErrInvalidOptions reports options or a record that leave their bounds.
	ErrInvalidOptions = errors.New("invalid options")
	// ErrTaken reports that another live node has the name.
	ErrTaken = errors.New("the name belongs to a live node")
	// ErrAlive reports that a record is that of a node that is alive.
	ErrAlive = errors.New("the node is alive")
	// ErrChanged reports that a record was changed since it was read.
	ErrChanged = errors.New("the record was changed meanwhile")
	// ErrNoNode reports that there is no record of the name.
	ErrNoNode = errors.New("no such node")
)

// Options of [Open]. The zero value is good.
type Options struct {
	// Heartbeat is the time between two writes of a node's record, 100 ms to 1 min. Defaults to 2
	// s.
	Heartbeat time.Duration
	// Threshold is how long a node may be silent before it counts as not responding, at least
	// Heartbeat. A node with a heartbeat of its own always has three of them. Defaults to 10 s.
	Threshold time.Duration
	// Forget is how long a record outlives its last write, at least Threshold. Defaults to 24 h.
	Forget time.Duration
	// Logger is told of names that are lost and of heartbeats that fail. Defaults to none.
	Logger logrus.FieldLogger
}

func (o Options) withDefaults() Options {
	o.Heartbeat = cmp.Or(o.Heartbeat, defaultHeartbeat)
	o.Threshold = cmp.Or(o.Threshold, defaultThreshold)
	o.Forget = cmp.Or(o.Forget, defaultForget)
	o.Logger = logx.Or(o.Logger)
	return o
}

// validate judges options that have their defaults.
func (o Options) validate() error {
	switch {
	case o.Heartbeat < minHeartbeat || o.Heartbeat > maxHeartbeat:
		return fmt.Errorf("%w: Heartbeat is %v: use %v to %v, or 0 for %v",
			ErrInvalidOptions, o.Heartbeat, minHeartbeat, maxHeartbeat, defaultHeartbeat)
	case o.Threshold < o.Heartbeat:
		return fmt.Errorf("%w: Threshold is %v: use at least the Heartbeat of %v, or 0 for %v",
			ErrInvalidOptions, o.Threshold, o.Heartbeat, defaultThreshold)
	case o.Forget < o.Threshold:
		return fmt.Errorf("%w: Forget is %v: use at least the Threshold of %v, or 0 for %v",
			ErrInvalidOptions, o.Forget, o.Threshold, defaultForget)
	}
	return nil
}
