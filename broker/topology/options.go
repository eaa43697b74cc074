package topology

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/internal/retention"
)

const (
	defaultNamespace  = "default"
	defaultPartitions = 4
	// Below this a stream cannot hold one message of the usual largest size beside others.
	minMaxBytes     = 16 << 20
	defaultAckWait  = 10 * time.Second
	minAckWait      = time.Second
	defaultMaxLists = 100
	maxDescription  = 1024
)

// ErrInvalidOptions reports options that leave their bounds. The text names the field and the way
// out.
var ErrInvalidOptions = errors.New("invalid options")

// Options of [Ensure].
type Options struct {
	// Namespace is the tenant: 1 to 64 bytes of letters, digits, - and _. Defaults to "default".
	Namespace string
	// Partitions is the number of shares of all workflow ids, 1 to 256; each costs three streams.
	// It is fixed when the namespace is made. Defaults to what the namespace has, and to 4 for a
	// new one.
	Partitions int
	// Replicas is the number of servers that hold each stream: 1, 3 or 5. Defaults to what the
	// namespace has, and to 1 for a new one.
	Replicas int
	// Memory makes streams in memory, which end with the server. A namespace that has the other
	// storage is refused, so that nobody runs on less than was asked for. Defaults to false.
	Memory bool
	// MaxBytes limits each stream of the namespace, at least 16 MiB; the buckets of claims,
	// checkpoints, types and nodes get 64 MiB at most. A publish beyond it is refused. -1 takes the
	// limit away. Defaults to what the namespace has, and to none for a new one.
	MaxBytes int64
	// Compression of histories: [CompressionNone] or [CompressionS2], which only one copy can have.
	// What is written already stays as it is, and a change takes effect when the server starts
	// again. Defaults to what the namespace has, and to none for a new one.
	Compression string
	// RequireTypes refuses workflows and activities whose types are not registered. Defaults to
	// what the namespace has, and to false for a new one.
	RequireTypes *bool
	// Description says what the namespace is for, in at most 1,024 bytes of text. Defaults to what
	// the namespace has.
	Description string
	// FlowRetention says how closed runs of flows are kept that say nothing themselves, Retention
	// those of other types, as [retention.ParseDefault] reads them. Default to what the namespace
	// has, and to [DefaultFlowRetention] and [DefaultRetention] for a new one.
	FlowRetention, Retention string
	// Synced says that the one server is ours and syncs every write before it acknowledges it. A
	// new namespace is then made so that what an owner can repeat from the histories is not synced,
	// see [Namespace]. Defaults to false.
	Synced bool
	// Version of the program, noted in the metadata of what it makes. Defaults to that of the
	// build.
	Version string
	// Logger is told what is made and changed. Defaults to none.
	Logger logrus.FieldLogger
}

func (o Options) withDefaults() Options {
	o.Namespace = cmp.Or(o.Namespace, defaultNamespace)
	o.Version = cmp.Or(o.Version, buildVersion())
	o.Logger = logx.Or(o.Logger)
	return o
}

// Validate judges the options as [Ensure] does, before anything is asked of a server.
//
// Errors: [ErrInvalidOptions].
func (o Options) Validate() error { return o.withDefaults().validate() }

// validate judges options that have their defaults.
func (o Options) validate() error {
	if err := subject.ValidateNamespace(o.Namespace); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidOptions, err)
	}
	if o.Partitions < 0 || o.Partitions > subject.MaxPartitions {
		return fmt.Errorf("%w: Partitions is %d: use 1 to %d, or 0 for what the namespace has",
			ErrInvalidOptions, o.Partitions, subject.MaxPartitions)
	}
	if len(o.Description) > maxDescription || !utf8.ValidString(o.Description) ||
		strings.ContainsFunc(o.Description, unicode.IsControl) {
		return fmt.Errorf(
			"%w: Description has %d bytes: use at most %d of text without control characters",
			ErrInvalidOptions, len(o.Description), maxDescription)
	}
	switch {
	case o.Compression != "" && o.Compression != CompressionNone && o.Compression != CompressionS2:
		return fmt.Errorf(
			"%w: Compression is %q: use none or s2, or leave it out for what the namespace has",
			ErrInvalidOptions, o.Compression)
	case o.Compression == CompressionS2 && o.Replicas > 1:
		return errCopies(o.Replicas)
	}
	for _, r := range []struct{ field, text string }{{"FlowRetention", o.FlowRetention}, {"Retention", o.Retention}} {
		if r.text == "" {
			continue
		}
		if _, err := retention.ParseDefault(r.text); err != nil || len(r.text) > maxDescription {
			return fmt.Errorf("%w: %s: %w", ErrInvalidOptions, r.field,
				cmp.Or(err, errLongRetention))
		}
	}
	switch o.Replicas {
	case 0, 1, 3, 5:
	default:
		return fmt.Errorf(
			"%w: Replicas is %d: use 1, 3 or 5 (an even number survives no more than the odd "+
				"one below it), or 0 for what the namespace has", ErrInvalidOptions, o.Replicas)
	}
	if o.MaxBytes < -1 || o.MaxBytes > 0 && o.MaxBytes < minMaxBytes {
		return fmt.Errorf(
			"%w: MaxBytes is %d: use at least %d, -1 for no limit, or 0 for what the namespace has",
			ErrInvalidOptions, o.MaxBytes, minMaxBytes)
	}
	return nil
}

// How the server keeps full blocks of histories.
const (
	CompressionNone = "none"
	CompressionS2   = "s2"
)

func errCopies(replicas int) error {
	return fmt.Errorf(
		"%w: Compression is s2: histories with %d copies cannot be compressed, leave it out or set it to none",
		ErrInvalidOptions, replicas)
}

// What holds for closed runs that say nothing, in a namespace that says nothing.
const (
	DefaultFlowRetention = "3 soft 3"
	DefaultRetention     = "7d"
)

var errLongRetention = errors.New(
	"it is too long: one count and one duration say most of what can be said")

// ListOptions of [EnsureList].
type ListOptions struct {
	// AckWait is how long a worker may be silent before the server gives its task to another, at
	// least 1 s. Defaults to 10 s.
	AckWait time.Duration
	// MaxLists is how many task lists the namespace may have. Each is a stream and a consumer of
	// its own. Two processes that make the last one at the same time may both succeed. Defaults to
	// 100.
	MaxLists int
}

func (o ListOptions) withDefaults() ListOptions {
	o.AckWait = cmp.Or(o.AckWait, defaultAckWait)
	o.MaxLists = cmp.Or(o.MaxLists, defaultMaxLists)
	return o
}

// validate judges options that have their defaults.
func (o ListOptions) validate() error {
	switch {
	case o.AckWait < minAckWait:
		return fmt.Errorf("%w: AckWait is %v: use at least %v, or 0 for %v",
			ErrInvalidOptions, o.AckWait, minAckWait, defaultAckWait)
	case o.MaxLists < 1:
		return fmt.Errorf("%w: MaxLists is %d: use at least 1, or 0 for %d",
			ErrInvalidOptions, o.MaxLists, defaultMaxLists)
	}
	return nil
}

func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
