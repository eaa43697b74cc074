package env

import (
	"errors"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/partition/loop"
)

// Owner is what every part of a partition's owner needs, and never changes.
type Owner struct {
	Env       *Env
	Partition int
	Loop      *loop.Loop
	Log       logrus.FieldLogger
}

// ErrNewerFence says that an owner with a later claim has fenced the partition.
var ErrNewerFence = errors.New("a later claim has fenced the partition")

// EffectRetry is how soon an effect is tried again that the server did not acknowledge.
const EffectRetry = 200 * time.Millisecond

// LoadRetry is how soon the history is read again that could not be read.
const LoadRetry = 200 * time.Millisecond

// DamagedTries is how often a damaged history is read again at once: a replica may lag.
const DamagedTries = 25
