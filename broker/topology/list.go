package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/internal/sleep"
)

// Consumer is the durable consumer of a task list's ordinary tasks. See [subject.Consumers] for
// all.
const Consumer = subject.Consumer

// maxWaiting is how many workers may wait on one list; each has one request out. The server's
// default of 512 is too few for a fleet, and the number cannot be changed later.
const maxWaiting = 8192

// Reasons why a list is not made.
var (
	// ErrNoNamespace reports a namespace that [Ensure] has not made.
	ErrNoNamespace = errors.New("no such namespace")
	// ErrTooManyLists reports that the namespace has as many task lists as it may have.
	ErrTooManyLists = errors.New("too many task lists")
)

// EnsureList makes the work queue of a task list and its consumers, or brings them to what the
// options say.
//
// Errors: [ErrInvalidOptions], [subject.ErrInvalidID], [ErrNoNamespace], [ErrDeleting],
// [ErrTooManyLists], [*ConflictError], or what the server said.
func EnsureList(
	ctx context.Context, conn *natsconn.Conn, ns subject.Namespace, list string, o ListOptions,
) error {
	o = o.withDefaults()
	if err := errors.Join(o.validate(), subject.ValidateNamespace(string(ns)),
		subject.ValidateName("list", list)); err != nil {
		return fmt.Errorf("topology: %w", err)
	}
	w := &work{js: conn.JetStream(), log: logx.Or(nil)}
	if err := w.list(ctx, ns, list, o); err != nil {
		return fmt.Errorf("topology: namespace %s, list %s: %w", ns, list, err)
	}
	return nil
}

func (w *work) list(ctx context.Context, name subject.Namespace, list string, o ListOptions) error {
	ns, err := w.namespace(ctx, name)
	if err != nil {
		return err
	}
	want := ns.tasks(buildVersion(), list)
	// Only a new one is counted: a worker of many lists asks for all of them when it starts, and
	// each count reads the names of all.
	if _, err := w.info(ctx, want.Name); errors.Is(err, jetstream.ErrStreamNotFound) {
		err = w.roomFor(ctx, ns.Name, want.Name, o.MaxLists)
		if err != nil {
			return err
		}
	}
	if err = w.stream(ctx, want); err == nil {
		err = w.consumers(ctx, name, list, o)
	}
	if still := w.outlives(ctx, name, want.Name); err == nil || errors.Is(still, ErrDeleting) {
		return still
	}
	return err
}

// outlives tells whether a namespace is still there after the making of one of its streams. A
// deletion that had looked for streams before leaves it, and a later namespace of the same name
// could not use it: it is removed.
func (w *work) outlives(ctx context.Context, name subject.Namespace, stream string) error {
	err := w.lives(ctx, name, stream)
	if ctx.Err() == nil {
		return err
	}
	// Who asked is gone, maybe because the namespace is; nobody else would look. The request to
	// make the stream may be carried out after that to delete it, so it is looked for again a
	// moment later.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), oneTry)
	defer cancel()
	if err = w.lives(ctx, name, stream); !errors.Is(err, ErrDeleting) ||
		sleep.For(ctx, retryWait) != nil {
		return err
	}
	return w.lives(ctx, name, stream)
}

func (w *work) lives(ctx context.Context, name subject.Namespace, stream string) error {
	var ended error
	err := w.retry(ctx, func(ctx context.Context) error {
		signals, err := w.info(ctx, name.StreamSignals())
		if err == nil {
			_, err = read(signals, name)
		} else if errors.Is(err, jetstream.ErrStreamNotFound) {
			err = fmt.Errorf("%w meanwhile", ErrDeleting)
		}
		if ended = err; !errors.Is(err, ErrDeleting) {
			return err
		}
		return w.js.DeleteStream(ctx, stream)
	})
	if err == nil || errors.Is(err, jetstream.ErrStreamNotFound) || !errors.Is(ended, ErrDeleting) {
		return ended
	}
	return refused("delete stream "+stream, err)
}

// consumers makes the consumers of a list's stream, one for the tasks of each priority.
func (w *work) consumers(
	ctx context.Context, name subject.Namespace, list string, o ListOptions,
) error {
	for _, priority := range []int{0, 1, -1} {
		consumer := subject.ConsumerOf(priority)
		want := jetstream.ConsumerConfig{
			Name: consumer, Durable: consumer, Description: "Drover: the workers of list " + list,
			DeliverPolicy: jetstream.DeliverAllPolicy, AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: o.AckWait, MaxDeliver: -1, MaxAckPending: -1, MaxWaiting: maxWaiting,
			FilterSubject: name.Task(list, priority),
		}
		if err := w.consumer(ctx, name.StreamTasks(list), want); err != nil {
			return err
		}
	}
	return nil
}

// roomFor counts the lists of a namespace before another is made.
func (w *work) roomFor(ctx context.Context, ns subject.Namespace, stream string, limit int) error {
	count := 0
	err := w.retry(ctx, func(ctx context.Context) error {
		count = 0
		names := w.js.StreamNames(ctx, jetstream.WithStreamListSubject(ns.AllTasks("*")))
		for name := range names.Name() {
			if name == stream {
				count = -1 << 31 // it exists, so it is not one more
			}
			count++
		}
		return names.Err()
	})
	if err != nil {
		return refused("list the streams", err)
	}
	if count >= limit {
		return fmt.Errorf(
			"%w: the namespace has %d of at most %d: use one of them, delete one that is not used, or raise MaxLists",
			ErrTooManyLists, count, limit)
	}
	return nil
}

// consumer makes the consumer, or brings the one that exists to what is wanted.
func (w *work) consumer(ctx context.Context, stream string, want jetstream.ConsumerConfig) error {
	for range attempts {
		var have jetstream.ConsumerConfig
		err := w.retry(ctx, func(ctx context.Context) error {
			c, err := w.js.Consumer(ctx, stream, want.Durable)
			if err == nil {
				have = c.CachedInfo().Config
			}
			return err
		})
		switch {
		case errors.Is(err, jetstream.ErrConsumerNotFound):
			err = w.retry(ctx, func(ctx context.Context) error {
				_, err := w.js.CreateConsumer(ctx, stream, want)
				return err
			})
			if errors.Is(err, jetstream.ErrConsumerExists) {
				continue // another process was faster
			}
			if err != nil {
				return refused("make consumer "+want.Durable+" of stream "+stream, err)
			}
			return nil
		case errors.Is(err, jetstream.ErrNotPullConsumer):
			return consumerConflict(stream, want.Durable, "delivery", "push", "pull")
		case err != nil:
			return refused("read consumer "+want.Durable+" of stream "+stream, err)
		}
		return w.adjust(ctx, stream, have, want)
	}
	return fmt.Errorf("consumer %s of stream %s comes and goes: is something deleting it?",
		want.Durable, stream)
}

func consumerConflict(stream, consumer, field, have, want string) error {
	return &ConflictError{
		Stream: stream, Consumer: consumer, Field: field, Have: have, Want: want,
		Hint: "delete the consumer: it is made again and no task is lost",
	}
}

// adjust changes what may be changed in a consumer that exists.
func (w *work) adjust(
	ctx context.Context, stream string, have, want jetstream.ConsumerConfig,
) error {
	for _, f := range []struct{ field, have, want string }{
		{"ack policy", have.AckPolicy.String(), want.AckPolicy.String()},
		{
			"deliver policy", strconv.Itoa(int(have.DeliverPolicy)),
			strconv.Itoa(int(want.DeliverPolicy)),
		},
		{"priority groups", fmt.Sprint(have.PriorityGroups), fmt.Sprint(want.PriorityGroups)},
	} {
		if f.have != f.want {
			return consumerConflict(stream, want.Durable, f.field, f.have, f.want)
		}
	}
	next := have
	var changed []string
	set(&changed, "ack_wait", &next.AckWait, want.AckWait)
	set(&changed, "max_ack_pending", &next.MaxAckPending, want.MaxAckPending)
	set(&changed, "max_deliver", &next.MaxDeliver, want.MaxDeliver)
	set(&changed, "headers_only", &next.HeadersOnly, false)
	set(&changed, "max_batch", &next.MaxRequestBatch, 0)
	set(&changed, "max_expires", &next.MaxRequestExpires, 0)
	set(&changed, "inactive_threshold", &next.InactiveThreshold, time.Duration(0))
	set(&changed, "filter_subject", &next.FilterSubject, want.FilterSubject)
	if !slices.Equal(next.FilterSubjects, want.FilterSubjects) {
		next.FilterSubjects = want.FilterSubjects
		changed = append(changed, "filter_subjects")
	}
	if len(next.BackOff) > 0 {
		next.BackOff = nil
		changed = append(changed, "backoff")
	}
	if len(changed) == 0 {
		return nil
	}
	err := w.retry(ctx, func(ctx context.Context) error {
		_, err := w.js.UpdateConsumer(ctx, stream, next)
		return err
	})
	if err != nil {
		return refused(fmt.Sprintf("change %v of consumer %s of stream %s",
			changed, want.Durable, stream), err)
	}
	w.log.WithField("stream", stream).Infof("consumer %s changed: %v", want.Durable, changed)
	return nil
}
