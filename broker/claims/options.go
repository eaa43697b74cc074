package claims

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
)

const (
	defaultTTL  = 10 * time.Second
	defaultLook = time.Second
	minTTL      = time.Second // the server's shortest
	maxTTL      = time.Hour
)

// Reasons for which a key is not taken, or a lease has ended. Compare with errors.Is.
var (
	// ErrInvalidOptions reports options that leave their bounds.
	ErrInvalidOptions = errors.New("invalid options")
	// ErrHeld is wrapped by every [*HeldError].
	ErrHeld = errors.New("claim is held")
	// ErrLost ends a lease that somebody else has taken or deleted.
	ErrLost = errors.New("claim lost")
	// ErrExpired ends a lease that could not be renewed in time; it wraps ErrLost.
	ErrExpired = fmt.Errorf("%w: it expired before a renewal was acknowledged", ErrLost)
	// ErrReconnected ends a lease whose connection was lost: others may have taken the claim at
	// once. It wraps ErrLost.
	ErrReconnected = fmt.Errorf("%w: the connection to NATS was lost, and others need not wait",
		ErrLost)
	// ErrReleased ends a lease that its holder has given back.
	ErrReleased = errors.New("claim released")
)

// HeldError says who holds a key; it wraps [ErrHeld].
type HeldError struct {
	Key    string
	Holder string // its node; "" if the value cannot be read
	Number uint64 // the holder's claim number
	// when it expires unless it is renewed, by the server's clock; zero while this process takes it
	Until time.Time
}

// Error names the holder.
func (e *HeldError) Error() string {
	holder := cmp.Or(e.Holder, "an unknown node")
	if e.Until.IsZero() {
		return fmt.Sprintf("claim %s is being taken by %s", e.Key, holder)
	}
	return fmt.Sprintf("claim %s is held by %s until %s unless it is renewed",
		e.Key, holder, e.Until.UTC().Format(time.RFC3339Nano))
}

// Unwrap returns [ErrHeld].
func (e *HeldError) Unwrap() error { return ErrHeld }

// Master is the key of the node that runs the health task.
const Master = "master"

// Recycle is the key of the node whose turn it is in a recycle.
const Recycle = "recycle"

const partitionPrefix = "partition."

// Partition is the key of a partition's owner.
func Partition(p int) string { return partitionPrefix + strconv.Itoa(p) }

// Alarms is the key of the timer worker of a partition.
func Alarms(p int) string { return "alarms." + strconv.Itoa(p) }

// ParsePartition reads a key that [Partition] wrote.
func ParsePartition(key string) (p int, ok bool) {
	num, ok := strings.CutPrefix(key, partitionPrefix)
	p, err := strconv.Atoi(num)
	return p, ok && err == nil && p >= 0 && num == strconv.Itoa(p)
}

// Options of [Open].
type Options struct {
	// Node is the name of this node, shown to others. Required.
	Node string
	// TTL is how long a claim outlives its holder, 1 s to 1 h. It is renewed every third of it.
	// Defaults to 10 s.
	TTL time.Duration
	// LookEvery is how often a [Share] looks who else is alive, up to 1 h. What the bucket tells of
	// its own accord comes sooner; a node that has expired is only seen so. Defaults to 1 s.
	LookEvery time.Duration
	// StoreID and Boot are those of the embedded server of this process. Claims of another boot of
	// the same store are taken over at once. Both or none. Default to none.
	StoreID, Boot string
	// Logger is told of claims taken, lost and released. Defaults to none.
	Logger logrus.FieldLogger
}

// withDefaults fills in what was left out.
func (o Options) withDefaults() Options {
	o.TTL = cmp.Or(o.TTL, defaultTTL)
	o.LookEvery = cmp.Or(o.LookEvery, defaultLook)
	o.Logger = logx.Or(o.Logger)
	return o
}

// Validate judges the options as [Open] does, before anything is asked of a server.
//
// Errors: [ErrInvalidOptions].
func (o Options) Validate() error { return o.withDefaults().validate() }

// validate judges options that have their defaults.
func (o Options) validate() error {
	switch {
	case subject.ValidateID("Node", o.Node) != nil:
		return fmt.Errorf("%w: %w", ErrInvalidOptions, subject.ValidateID("Node", o.Node))
	case o.TTL < minTTL || o.TTL > maxTTL:
		return fmt.Errorf("%w: TTL is %v: use %v to %v, or 0 for %v",
			ErrInvalidOptions, o.TTL, minTTL, maxTTL, defaultTTL)
	case o.LookEvery < 0 || o.LookEvery > maxTTL:
		return fmt.Errorf("%w: LookEvery is %v: use up to %v, or 0 for %v",
			ErrInvalidOptions, o.LookEvery, maxTTL, defaultLook)
	case (o.StoreID == "") != (o.Boot == ""):
		return fmt.Errorf(
			"%w: StoreID is %q and Boot is %q: give both, those of the embedded server, or none",
			ErrInvalidOptions, o.StoreID, o.Boot)
	}
	return nil
}
