package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
)

// Info is a namespace as it stands.
type Info struct {
	Namespace
	Created  time.Time // when its first stream was made
	Deleting bool      // somebody has begun to delete it
	// Incomplete says that a stream or bucket of it is missing which [Ensure] makes. [Describe] and
	// [Serve] tell it, [Lookup] and [List] do not: they ask for the signals streams alone.
	Incomplete bool
	// Usage and Lists are told by [Describe] only.
	Usage []Usage
	Lists []string // task lists, sorted
}

// Usage sums up the streams of one kind.
type Usage struct {
	Kind     string // one of signals, inbox, history, alarms, tasks, dead, buckets, payloads
	Streams  int
	Messages uint64
	Bytes    uint64
}

// kinds are the kinds of streams in the order in which they are shown, and how their names begin
// after that of the namespace.
var kinds = []struct{ kind, prefix string }{
	{"signals", "signals"},
	{"inbox", "in-"},
	{"history", "history-"},
	{"alarms", "alarms-"},
	{"tasks", "tasks-"},
	{"dead", "dead"},
	{"operations", "operations"},
	{"buckets", ""},
	{"payloads", ""},
}

const (
	bucketPrefix = "KV_"
	storePrefix  = "OBJ_"
	// everySignals matches the subjects of the signals streams of all namespaces.
	everySignals = subject.Root + ".*.signal.*.*"
	nameEnd      = "-signals"
)

// Names tells which namespaces there are, sorted. It asks one question, however many they are.
func Names(ctx context.Context, conn *natsconn.Conn) ([]subject.Namespace, error) {
	w := &work{js: conn.JetStream()}
	streams, err := w.names(ctx, everySignals)
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	var all []subject.Namespace
	for _, stream := range streams {
		// Somebody else's stream may have such subjects too.
		rest, ours := strings.CutPrefix(stream, subject.Root+"-")
		name, signals := strings.CutSuffix(rest, nameEnd)
		if ours && signals && subject.ValidateNamespace(name) == nil {
			all = append(all, subject.Namespace(name))
		}
	}
	slices.Sort(all)
	return all, nil
}

// Lookup tells what a namespace is, without its usage. If it does not exist the error is
// [ErrNoNamespace].
func Lookup(ctx context.Context, conn *natsconn.Conn, ns subject.Namespace) (*Info, error) {
	if err := subject.ValidateNamespace(string(ns)); err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	ctx, stop := untilRefused(ctx, conn)
	defer stop()
	i, err := (&work{js: conn.JetStream()}).lookup(ctx, ns)
	if err = orRefused(ctx, err); err != nil {
		return nil, fmt.Errorf("topology: namespace %s: %w", ns, err)
	}
	return i, nil
}

// Describe is [Lookup] with the usage and the task lists.
func Describe(ctx context.Context, conn *natsconn.Conn, ns subject.Namespace) (*Info, error) {
	i, err := Lookup(ctx, conn, ns)
	if err != nil {
		return nil, err
	}
	w := &work{js: conn.JetStream()}
	streams, err := w.belongings(ctx, ns)
	if err != nil {
		return nil, fmt.Errorf("topology: namespace %s: %w", ns, err)
	}
	byKind, have := map[string]*Usage{}, map[string]bool{bucketPrefix + subject.BucketNodes: true}
	for _, s := range streams {
		have[s.Config.Name] = true
		kind := kindOf(ns, s.Config.Name)
		u := byKind[kind]
		if u == nil {
			u = &Usage{Kind: kind}
			byKind[kind] = u
		}
		u.Streams++
		u.Messages += s.State.Msgs
		u.Bytes += s.State.Bytes
		if list, ok := strings.CutPrefix(s.Config.Name, ns.StreamTasks("")); ok && kind == "tasks" {
			i.Lists = append(i.Lists, list)
		}
	}
	for _, k := range kinds {
		if u := byKind[k.kind]; u != nil {
			i.Usage = append(i.Usage, *u)
		}
	}
	slices.Sort(i.Lists)
	i.Incomplete = i.lacks(have)
	return i, nil
}

// UnreadError names the namespaces that [List] could not read now, such as those whose signals
// stream has no leader.
type UnreadError struct {
	Names []subject.Namespace // sorted
	Err   error               // of the first
}

// Error names the first.
func (e *UnreadError) Error() string {
	more := ""
	if n := len(e.Names) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("topology: namespace %s%s: %v", e.Names[0], more, e.Err)
}

// Unwrap returns what kept the first from being read.
func (e *UnreadError) Unwrap() error { return e.Err }

// List tells what all namespaces are, without their usage, sorted by name. One that is deleted
// meanwhile is left out, and so is a stream that only looks like the beginning of one. With an
// [*UnreadError] it tells of all others.
func List(ctx context.Context, conn *natsconn.Conn, log logrus.FieldLogger) ([]*Info, error) {
	names, err := Names(ctx, conn)
	if err != nil {
		return nil, err
	}
	return Lookups(ctx, conn, names, log)
}

// Lookups is [List] for namespaces that are known by name; one that is not there is left out.
func Lookups(
	ctx context.Context, conn *natsconn.Conn, names []subject.Namespace, log logrus.FieldLogger,
) ([]*Info, error) {
	w := &work{js: conn.JetStream()}
	all, errs := make([]*Info, len(names)), make([]error, len(names))
	each(len(names), func(n int) {
		ctx, stop := conn.UntilRefused(ctx, "$JS.API.STREAM.INFO."+names[n].StreamSignals())
		defer stop()
		all[n], errs[n] = w.lookup(ctx, names[n])
		errs[n] = orRefused(ctx, errs[n])
	})
	unread := &UnreadError{}
	for n, err := range errs {
		switch {
		case err == nil, errors.Is(err, ErrNoNamespace):
		case errors.Is(err, ErrConflict):
			logx.Or(log).WithError(err).Warn("a stream looks like that of a namespace and is none")
		default:
			unread.Names = append(unread.Names, names[n])
			unread.Err = cmp.Or(unread.Err, err)
		}
	}
	all = slices.DeleteFunc(all, func(i *Info) bool { return i == nil })
	if len(unread.Names) > 0 {
		return all, unread
	}
	return all, nil
}

func (w *work) lookup(ctx context.Context, ns subject.Namespace) (*Info, error) {
	s, err := w.streamInfo(ctx, ns.StreamSignals())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf("%w: see \"drover namespace list\"", ErrNoNamespace)
	}
	if err != nil {
		return nil, err
	}
	have, err := readAny(&s.Config, ns)
	if err != nil {
		return nil, err
	}
	return &Info{
		Namespace: *have, Created: s.Created, Deleting: s.Config.Metadata[metaDeleting] != "",
	}, nil
}

// late are the streams that a namespace has made on first use, as they should be: its limits are
// theirs too.
func (w *work) late(ctx context.Context, ns *Namespace, version string) ([]wanted, error) {
	streams, err := w.belongings(ctx, ns.Name)
	if err != nil {
		return nil, err
	}
	var all []wanted
	for _, s := range streams {
		list, tasks := strings.CutPrefix(s.Config.Name, ns.Name.StreamTasks(""))
		switch {
		case tasks:
			all = append(all, ns.tasks(version, list))
		case s.Config.Name == ns.Name.StreamPayloads():
			all = append(all, ns.payloads(version))
		}
	}
	return all, nil
}

// belongings finds every stream of a namespace: those on its subjects, and buckets and object
// stores by their names. It relies on nothing that the namespace says about itself, so what a crash
// has left is found too. Streams that others have put on the same subjects, such as one that keeps
// the live feed, are not among them.
func (w *work) belongings(
	ctx context.Context, ns subject.Namespace,
) ([]*jetstream.StreamInfo, error) {
	var candidates []string
	for _, from := range []struct{ filter, prefix string }{
		{ns.All(), subject.Root + "-" + string(ns) + "-"},
		{"$KV.>", bucketPrefix + subject.Root + "-" + string(ns) + "-"},
		{"$O.>", storePrefix + subject.Root + "-" + string(ns) + "-"},
	} {
		names, err := w.names(ctx, from.filter)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			if strings.HasPrefix(n, from.prefix) {
				candidates = append(candidates, n)
			}
		}
	}
	slices.Sort(candidates)
	candidates = slices.Compact(candidates)
	infos, errs := make([]*jetstream.StreamInfo, len(candidates)), make([]error, len(candidates))
	each(len(candidates), func(n int) { infos[n], errs[n] = w.streamInfo(ctx, candidates[n]) })
	var all []*jetstream.StreamInfo
	for n, err := range errs {
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
		case err != nil:
			return nil, err
		case owns(ns, &infos[n].Config):
			all = append(all, infos[n])
		}
	}
	return all, nil
}

// owns tells whether a stream whose name and subjects fit is one of the namespace. Names do not
// tell: "drover-a-b-state" may be the state of a-b, or something of a. Buckets that the client
// library has made bear no metadata.
func owns(ns subject.Namespace, c *jetstream.StreamConfig) bool {
	if owner := c.Metadata[metaNamespace]; owner != "" {
		return owner == string(ns)
	}
	switch c.Name {
	case bucketPrefix + ns.BucketClaims(),
		bucketPrefix + ns.BucketCheckpoints(),
		bucketPrefix + ns.BucketLocks(),
		bucketPrefix + ns.BucketState(),
		bucketPrefix + ns.BucketTypes(),
		bucketPrefix + ns.BucketFlows(),
		bucketPrefix + ns.BucketSchedules(),
		storePrefix + ns.StorePayloads():
		return true
	}
	return false
}

func kindOf(ns subject.Namespace, stream string) string {
	switch {
	case strings.HasPrefix(stream, bucketPrefix):
		return "buckets"
	case strings.HasPrefix(stream, storePrefix):
		return "payloads"
	}
	rest := strings.TrimPrefix(stream, subject.Root+"-"+string(ns)+"-")
	for _, k := range kinds {
		if k.prefix != "" && strings.HasPrefix(rest, k.prefix) {
			return k.kind
		}
	}
	return "other"
}

// names lists the streams that have a subject which the filter meets.
func (w *work) names(ctx context.Context, filter string) ([]string, error) {
	var all []string
	err := w.retry(ctx, func(ctx context.Context) error {
		all = nil
		l := w.js.StreamNames(ctx, jetstream.WithStreamListSubject(filter))
		for name := range l.Name() {
			all = append(all, name)
		}
		return l.Err()
	})
	if err != nil {
		return nil, refused("list the streams", err)
	}
	return all, nil
}

func (w *work) streamInfo(
	ctx context.Context, name string,
) (info *jetstream.StreamInfo, err error) {
	err = w.retry(ctx, func(ctx context.Context) error {
		s, err := w.js.Stream(ctx, name)
		if err == nil {
			info = s.CachedInfo()
		}
		return err
	})
	if err != nil {
		return nil, refused("read stream "+name, err)
	}
	return info, nil
}

// each calls fn for 0 to n-1, several at a time.
func each(n int, fn func(int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			fn(i)
		})
	}
	wg.Wait()
}
