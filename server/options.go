package server

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/logs"
)

// The roles of a server. Each can run alone; all of them run by default.
const (
	// RoleBroker owns partitions: it keeps histories and hands out tasks.
	RoleBroker = "broker"
	// RoleTimers wakes runs when something is due.
	RoleTimers = "timers"
	// RoleOps looks after nodes, schedules, retention and audits; one server at a time does.
	RoleOps = "ops"
	// RoleFlows decides for the flows that are deployed.
	RoleFlows = "flows"
)

// Roles are all roles, in the order in which they are always named.
func Roles() []string { return slices.Clone(allRoles) }

var allRoles = []string{RoleBroker, RoleTimers, RoleOps, RoleFlows}

// What [Options.AfterCrash] takes.
const (
	// AfterCrashRecover has the roles begin at once.
	AfterCrashRecover = "recover"
	// AfterCrashHalt has them wait for the word of an operator: drover node ack.
	AfterCrashHalt = "halt"
)

const (
	// DefaultNamespace is the home of a server that names none.
	DefaultNamespace = "default"
	// defaultDrain bounds a planned stop: hand over partitions, finish what runs (S2-1).
	defaultDrain = 5 * time.Minute
)

// ErrInvalidOptions says that options contradict themselves or leave their bounds.
var ErrInvalidOptions = errors.New("invalid options")

// Options of [New]. The zero value runs all roles on a NATS server in memory that listens on
// 127.0.0.1:4222.
type Options struct {
	// Namespace is the home of the server: made if it is missing. Defaults to "default".
	Namespace string
	// OnlyNamespace keeps the server from serving any other namespace, and from making and deleting
	// some for clients. It then needs no right to anything outside its own. Defaults to false.
	OnlyNamespace bool
	// Embedded configures the NATS server in this process. Its Logger is not used: Logger is.
	// Not used with External. Defaults to one in memory.
	Embedded embedded.Options
	// External says how to connect to a NATS server or cluster elsewhere, which may be in this
	// process too. Its Name and Logger are not used. Defaults to none.
	External *natsconn.Options
	// Roles of this process, some of [Roles]. Defaults to all.
	Roles []string
	// Partitions of a new home, 1 to 256. Defaults to what it has, or 4.
	Partitions int
	// Replicas are how many NATS servers hold each stream of the home: 1, 3 or 5. Defaults to what
	// it has, or 3 on an embedded node of a cluster, else 1.
	Replicas int
	// MaxBytes limits each stream of the home, in bytes, at least 16 MiB; -1 takes the limit away.
	// Defaults to what it has, or none.
	MaxBytes int64
	// MaxEvents is after how many events a history may not grow, the same on every server. Defaults
	// to 50,000.
	MaxEvents int64
	// ClaimTTL is how long the claims of this process outlive it. Defaults to 10 s.
	ClaimTTL time.Duration
	// Node names this process: up to 256 bytes. Defaults to the host name, with a number while
	// another live node has it.
	Node string
	// AfterCrash says what to do when an earlier self of this node did not end properly:
	// [AfterCrashRecover] or [AfterCrashHalt]. The latter needs Node with External. Defaults to
	// AfterCrashRecover.
	AfterCrash string
	// DrainTimeout bounds a planned stop. Defaults to 5 min.
	DrainTimeout time.Duration
	// RecycleExit ends [Server.Run] with [ErrRecycled] in its turn of a recycle, instead of
	// restarting the roles. Defaults to false.
	RecycleExit bool
	// IndexDir is the folder for snapshots of the indexes, of this server alone, by which one with
	// the role ops need not read all histories after a start. Defaults to index in Embedded.StoreDir, and to none
	// where there is none.
	IndexDir string
	// IndexMemory is how many bytes the rows of the indexes of all namespaces may take together, on
	// a server with the role ops. Above it the oldest closed runs leave. Defaults to a quarter of
	// the machine's memory, at most 1 GiB.
	IndexMemory int64
	// Version of the program, for the records of nodes. Defaults to "dev".
	Version string
	// Metrics takes what the server has for Prometheus, while it runs. Defaults to none.
	Metrics prometheus.Registerer
	// Logger is told what the server does. Defaults to one that writes warnings and errors to
	// stderr.
	Logger logrus.FieldLogger
	// Hurry cuts a stop short when it is closed. Defaults to never.
	Hurry <-chan struct{}
}

func (o Options) withDefaults() Options {
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.AfterCrash = cmp.Or(o.AfterCrash, AfterCrashRecover)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, defaultDrain)
	o.Version = cmp.Or(o.Version, "dev")
	o.IndexMemory = cmp.Or(o.IndexMemory, indexMemory(machineMemory()))
	o.Logger = logs.Or(o.Logger)
	if len(o.Roles) == 0 {
		o.Roles = allRoles
	}
	o.Roles = slices.SortedFunc(slices.Values(o.Roles), func(a, b string) int {
		return cmp.Compare(slices.Index(allRoles, a), slices.Index(allRoles, b))
	})
	o.Roles = slices.Compact(o.Roles)
	return o
}

// home are the options of the home.
func (o Options) home() topology.Options {
	return topology.Options{
		Namespace: o.Namespace, Partitions: o.Partitions, Replicas: o.Replicas,
		MaxBytes: o.MaxBytes,
	}
}

// validate judges options that have their defaults, so that what is refused leaves no store.
func (o Options) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalidOptions, fmt.Sprintf(format, args...))
	}
	for _, role := range o.Roles {
		if !slices.Contains(allRoles, role) {
			return bad("Roles names %q: use some of %s", role, strings.Join(allRoles, ","))
		}
	}
	switch {
	case o.AfterCrash != AfterCrashRecover && o.AfterCrash != AfterCrashHalt:
		return bad("AfterCrash is %q: use %s or %s",
			o.AfterCrash, AfterCrashRecover, AfterCrashHalt)
	case o.AfterCrash == AfterCrashHalt && o.External != nil && o.Node == "":
		return bad(
			"AfterCrash is %s, which needs Node beside a NATS elsewhere: without a name of its "+
				"own a node does not know its earlier self", o.AfterCrash)
	case o.MaxEvents < 0:
		return bad("MaxEvents is %d: use at least 1, or 0 for 50000", o.MaxEvents)
	case o.IndexMemory < 0:
		return bad("IndexMemory is %d: use at least 1, or 0 for a quarter of the machine",
			o.IndexMemory)
	case o.DrainTimeout < 0:
		return bad("DrainTimeout is %v: use more than 0, or 0 for %v", o.DrainTimeout, defaultDrain)
	}
	if err := o.home().Validate(); err != nil {
		return &optionsError{err.Error(), err}
	}
	if err := (claims.Options{Node: cmp.Or(o.Node, "node"), TTL: o.ClaimTTL}).Validate(); err != nil {
		return &optionsError{strings.Replace(err.Error(), "TTL is", "ClaimTTL is", 1), err}
	}
	if o.External == nil {
		if err := o.Embedded.Validate(); err != nil {
			return &optionsError{"embedded server: " + err.Error(), err}
		}
	}
	return nil
}

// optionsError is what a package below says of options that were given to this one. It is
// [ErrInvalidOptions].
type optionsError struct {
	text  string
	cause error
}

func (e *optionsError) Error() string        { return e.text }
func (e *optionsError) Unwrap() error        { return e.cause }
func (e *optionsError) Is(target error) bool { return target == ErrInvalidOptions }

// semantic is the form that NATS demands of a service's version.
var semantic = regexp.MustCompile(
	`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// semanticVersion is the version where only a semantic one will do; 0.0.0 for one that is none.
func (o Options) semanticVersion() string {
	v := strings.TrimPrefix(o.Version, "v")
	if !semantic.MatchString(v) {
		return "0.0.0"
	}
	return v
}
