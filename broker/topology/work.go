package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
)

// Reasons other than a conflict. Compare with errors.Is; the text says what to do.
var (
	// ErrServerTooOld reports a NATS server before 2.11, which knows no TTL of single messages, or
	// 2.12.0 or 2.12.1: a stream that is written to while several of its messages are read by a
	// direct get stands still for ever there, and connections with it.
	ErrServerTooOld = errors.New("the NATS server is too old")
	// ErrNoJetStream reports a server or account without JetStream.
	ErrNoJetStream = errors.New("JetStream is not enabled")
	// ErrRefused reports that the server will not make or change a stream; the text has its words.
	ErrRefused = errors.New("the NATS server refuses")
)

const (
	minMajor, minMinor = 2, 11
	// attempts bounds how often another process may be faster before that is an error.
	attempts = 10
	// patience is how long a cluster without a leader is waited for; an election takes 4 to 9 s.
	patience  = 15 * time.Second
	oneTry    = 5 * time.Second
	retryWait = 100 * time.Millisecond
)

// Codes of the server that have a meaning here.
const (
	codeNoPeers         = 10005
	codeUnavailable     = 10008
	codeNotLeader       = 10009
	codeInsufficient    = 10023
	codeMaxConsumers    = 10026
	codeMaxStreams      = 10027
	codeNoMemory        = 10028
	codeNoStorage       = 10047
	codeSubjectsOverlap = 10065
	codeNoReplicas      = 10074
	codeNeedsMaxBytes   = 10113
	codeNoTier          = 10120
	codeMaxBytesTooHigh = 10122
)

var hints = map[jetstream.ErrorCode]string{
	codeNoPeers: "the cluster has too few servers with JetStream for that many Replicas " +
		"(--replicas): start more, or ask for fewer",
	codeInsufficient: "free space, lower MaxBytes (--max-bytes), or raise the limits of the account",
	codeMaxConsumers: natsconn.ConsumersHint,
	codeMaxStreams: "raise the account's limit of streams, or use fewer Partitions " +
		"(--partitions) in a new namespace",
	codeNoMemory:   "lower MaxBytes (--max-bytes), or raise the memory limits of the account",
	codeNoStorage:  "free disk space, lower MaxBytes (--max-bytes), or raise the limits of the account",
	codeNoReplicas: "a single server holds one copy: set Replicas (--replicas) to 1, or connect to a cluster",
	codeNoTier: "the account has limits for other numbers of Replicas (--replicas) " +
		"only: ask for one of them, or let it have this one too",
	codeMaxBytesTooHigh: "the account bounds the size of a stream: lower MaxBytes (--max-bytes)",
	codeNeedsMaxBytes:   "this account wants a limit on each stream: set MaxBytes (--max-bytes)",
}

// work is one call of this package.
type work struct {
	js  jetstream.JetStream
	log logrus.FieldLogger

	mu sync.Mutex
	// the streams that were made, or may have been: nobody waited for the answer, or none came
	made []string
}

// checkServer refuses what lacks JetStream or per-message TTLs. The API level counts beside the
// version of the server that we are connected to, because in a cluster another one answers.
func (w *work) checkServer(ctx context.Context, conn *natsconn.Conn) error {
	if err := checkVersion(conn.NATS().ConnectedServerVersion()); err != nil {
		return err
	}
	var level int
	err := w.retry(ctx, func(ctx context.Context) error {
		info, err := w.js.AccountInfo(ctx)
		if err == nil {
			level = info.API.Level
		}
		if on, _ := conn.NATS().ConnectedServerJetStream(); errors.Is(err,
			jetstream.ErrJetStreamNotEnabled) && !on && conn.NATS().ConnectedClusterName() == "" {
			return errNoJetStream // nobody else could answer, so do not wait for it
		}
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrNoResponders):
		return errNoJetStream
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w for this account: enable it there, or use another account",
			ErrNoJetStream)
	case err != nil:
		return refused("read the account", err)
	case level < 1:
		return fmt.Errorf(
			"%w: a server of the cluster has JetStream API level 0: upgrade all of them to %d.%d or newer",
			ErrServerTooOld, minMajor, minMinor)
	}
	return nil
}

// leafHint is what to do where nobody answers the JetStream API.
const leafHint = "start the server with --jetstream or a jetstream block, connect to another, " +
	"or, if it is a leaf node of one, name the JetStream domain of that one, by " +
	"jetstream_domain of a NATS context or Options.APIPrefix"

// leaderHint is what to do where a cluster answers that it cannot.
const leaderHint = `the cluster of NATS has no leader: fewer than half of its servers can be reached, ` +
	`or it is about to elect one: start the others, see "nats server report jetstream", and try again`

var errNoJetStream = fmt.Errorf("%w: %s", ErrNoJetStream, leafHint)

// checkVersion reads 2.11.3, v2.12.0-beta.1 and the like. A text it cannot read passes: the API
// level is asked too.
func checkVersion(version string) error {
	var major, minor, patch int
	n, _ := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d.%d", &major, &minor, &patch)
	switch {
	case n < 2:
	case major < minMajor || major == minMajor && minor < minMinor:
		return fmt.Errorf("%w: it is %s: upgrade it to %d.%d or newer",
			ErrServerTooOld, version, minMajor, minMinor)
	case n == 3 && major == 2 && minor == 12 && patch < 2: // nats-server pull request 7458
		return fmt.Errorf(
			"%w: it is %s, whose streams come to stand still where they are read and written at "+
				"the same time: upgrade it to 2.12.2 or newer", ErrServerTooOld, version)
	}
	return nil
}

// all ensures streams, so many at a time, and returns the first error in their order.
func (w *work) all(ctx context.Context, streams []wanted, atOnce int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(streams))
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range streams {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if errs[i] = w.stream(ctx, streams[i]); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	return firstCause(errs)
}

// firstCause prefers an error that is not the echo of another one's cancellation.
func firstCause(errs []error) error {
	var echo error
	for _, err := range errs {
		switch {
		case err == nil:
		case errors.Is(err, context.Canceled):
			echo = err
		default:
			return err
		}
	}
	return echo
}

// stream makes one stream, or brings the one that exists to what is wanted.
func (w *work) stream(ctx context.Context, want wanted) error {
	for range attempts {
		var changed []string
		err := w.retry(ctx, func(ctx context.Context) error { return w.adapt(ctx, want, &changed) })
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			if err = w.create(ctx, want.StreamConfig); errors.Is(err,
				jetstream.ErrStreamNameAlreadyInUse) {
				continue
			}
			return err
		}
		if err == nil && len(changed) > 0 {
			w.log.WithField("stream", want.Name).Infof("stream changed: %s",
				strings.Join(changed, ", "))
		}
		return err
	}
	return fmt.Errorf("stream %s comes and goes: is something deleting it?", want.Name)
}

// adapt brings the stream that exists to what is wanted, once, and notes what it changes. It reads
// the stream each time: after a lost answer it may be another one of the name, and have been
// changed by others.
func (w *work) adapt(ctx context.Context, want wanted, changed *[]string) error {
	have, err := w.info(ctx, want.Name)
	if err != nil {
		return err
	}
	if err := want.conflict(have); err != nil {
		return err
	}
	next, fields := want.merge(have)
	if len(fields) == 0 {
		return nil
	}
	*changed = fields
	if _, err := w.js.UpdateStream(ctx, next); err != nil {
		return refused("change "+strings.Join(fields, ", ")+" of stream "+want.Name, err)
	}
	return nil
}

func (w *work) info(ctx context.Context, name string) (*jetstream.StreamConfig, error) {
	var cfg jetstream.StreamConfig
	err := w.retry(ctx, func(ctx context.Context) error {
		s, err := w.js.Stream(ctx, name)
		if err == nil {
			cfg = s.CachedInfo().Config
		}
		return err
	})
	if err != nil {
		return nil, refused("read stream "+name, err)
	}
	return &cfg, nil
}

func (w *work) create(ctx context.Context, cfg jetstream.StreamConfig) error {
	err := w.retry(ctx, func(ctx context.Context) error {
		_, err := w.js.CreateStream(ctx, cfg)
		return err
	})
	if api, ok := errors.AsType[*jetstream.APIError](err); ok &&
		api.ErrorCode == codeSubjectsOverlap {
		return w.overlap(ctx, cfg, err)
	}
	if err == nil || ctx.Err() != nil || Transient(err) {
		w.mu.Lock()
		w.made = append(w.made, cfg.Name)
		w.mu.Unlock()
	}
	if err != nil {
		return refused("make stream "+cfg.Name, err)
	}
	w.log.WithField("stream", cfg.Name).Debug("stream made")
	return nil
}

// overlap finds whose stream has the subjects.
func (w *work) overlap(ctx context.Context, cfg jetstream.StreamConfig, cause error) error {
	taken, err := w.taken(ctx, cfg)
	if err != nil || taken == nil {
		return refused("make stream "+cfg.Name, cause) // it is gone, or we may not list
	}
	return taken
}

// taken says which other streams have the subjects of one that is not there; nil if none has.
func (w *work) taken(ctx context.Context, cfg jetstream.StreamConfig) (*ConflictError, error) {
	var foreign []string
	for _, s := range cfg.Subjects {
		names, err := w.names(ctx, s)
		if err != nil {
			return nil, err
		}
		foreign = append(foreign, names...)
	}
	foreign = slices.DeleteFunc(foreign, func(name string) bool { return name == cfg.Name })
	if len(foreign) == 0 {
		return nil, nil
	}
	return &ConflictError{
		Stream: cfg.Name, Field: "subjects " + strings.Join(cfg.Subjects, ", "),
		Have: "taken by stream " + strings.Join(foreign, ", "), Want: "free",
		Hint: "change the subjects of that stream or delete it, or choose another namespace",
	}, nil
}

// retry repeats an idempotent request while the cluster cannot answer.
func (w *work) retry(ctx context.Context, request func(context.Context) error) error {
	start := time.Now()
	var said error // by the last try that had all its time
	for {
		one, cancel := context.WithTimeout(ctx, oneTry)
		err := request(one)
		cancel()
		if err == nil || !Transient(err) {
			return err
		}
		if _, limited := ctx.Deadline(); !limited && time.Since(start) >= patience {
			return err
		}
		switch ended := sleep.For(ctx, retryWait); {
		case ended == nil:
			said = err
		case !errors.Is(err, ended):
			return fmt.Errorf("%w; the last try: %w", ended, err)
		case said != nil: // the last try has ended with ctx, and only says so
			return fmt.Errorf("%w; the try before: %w", ended, said)
		default:
			return err
		}
	}
}

// Transient tells whether an error of this package is that of a server, or of a cluster without a
// leader, that may answer in a moment.
func Transient(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.ErrorCode == codeUnavailable || api.ErrorCode == codeNotLeader
	}
	return errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, jetstream.ErrJetStreamNotEnabled) ||
		errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrDisconnected) ||
		errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
}

// refused adds the way out to what the server said. Errors that callers act upon keep their
// identity.
func refused(what string, err error) error {
	api, ok := errors.AsType[*jetstream.APIError](err)
	switch {
	case ok && (api.ErrorCode == codeUnavailable || api.ErrorCode == codeNotLeader):
		// it cannot answer, which is no refusal
		return fmt.Errorf("%s: %w: %s", what, err, leaderHint)
	case ok && hints[api.ErrorCode] != "":
		return fmt.Errorf("%w to %s: %w: %s", ErrRefused, what, err, hints[api.ErrorCode])
	case ok:
		return fmt.Errorf("%w to %s: %w", ErrRefused, what, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf(
			"%s: no answer: the server may have no leader, or this user no right to publish to the JetStream API: %w",
			what, err)
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%s: %w: %s", what, err, leafHint)
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}
