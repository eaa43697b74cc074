package topology

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/subject"
	"github.com/nats-io/nats.go/jetstream"
)

// Consumer is the durable consumer of every task list.
const Consumer = "workers"

// maxWaiting is how many workers may wait on one list; each has one request out. The server's default of 512 is too few
// for a fleet, and the number cannot be changed later.
const maxWaiting = 8192

// Reasons why a list is not made.
var (
	// ErrNoNamespace reports a namespace that [Ensure] has not made.
	ErrNoNamespace = errors.New("no such namespace")
	// ErrTooManyLists reports that the namespace has as many task lists as it may have.
	ErrTooManyLists = errors.New("too many task lists")
)

// EnsureList makes the work queue of a task list and its consumer, or brings them to what the options say.
//
// Errors: [ErrInvalidOptions], [subject.ErrInvalidID], [ErrNoNamespace], [ErrTooManyLists], [*ConflictError], or what
// the server said.
func EnsureList(ctx context.Context, conn *post.Conn, ns subject.Namespace, list string, o ListOptions) error {
	o = o.withDefaults()
	if err := errors.Join(o.validate(), subject.ValidateNamespace(string(ns)), subject.ValidateName("list", list)); err != nil {
		return fmt.Errorf("topology: %w", err)
	}
	w := &work{js: conn.JetStream(), log: o.Logger}
	if err := w.list(ctx, ns, list, o); err != nil {
		return fmt.Errorf("topology: namespace %s, list %s: %w", ns, list, err)
	}
	return nil
}

func (w *work) list(ctx context.Context, name subject.Namespace, list string, o ListOptions) error {
	signals, err := w.info(ctx, name.StreamSignals())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("%w: start a server for it, or create it with \"drover namespace create %s\"", ErrNoNamespace, name)
	}
	if err != nil {
		return err
	}
	ns, err := read(signals, name)
	if err != nil {
		return err
	}
	if o.Replicas != 0 {
		ns.Replicas = o.Replicas
	}
	if o.MaxBytes != 0 {
		ns.MaxBytes = max(o.MaxBytes, 0)
	}
	want := ns.tasks(o.Version, list)
	if err := w.roomFor(ctx, ns.Name, want.Name, o.MaxLists); err != nil {
		return err
	}
	if err := w.stream(ctx, want); err != nil {
		return err
	}
	return w.consumer(ctx, want.Name, jetstream.ConsumerConfig{
		Name: Consumer, Durable: Consumer, Description: "Drover: the workers of list " + list,
		DeliverPolicy: jetstream.DeliverAllPolicy, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: o.AckWait, MaxDeliver: -1, MaxAckPending: -1, MaxWaiting: maxWaiting,
	})
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
		return fmt.Errorf("%w: the namespace has %d of at most %d: use one of them, delete one that is not used, or raise MaxLists", ErrTooManyLists, count, limit)
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
			return consumerConflict(stream, "delivery", "push", "pull")
		case err != nil:
			return refused("read consumer "+want.Durable+" of stream "+stream, err)
		}
		return w.adjust(ctx, stream, have, want)
	}
	return fmt.Errorf("consumer %s of stream %s comes and goes: is something deleting it?", want.Durable, stream)
}

func consumerConflict(stream, field, have, want string) error {
	return &ConflictError{
		Stream: stream, Consumer: Consumer, Field: field, Have: have, Want: want,
		Hint: "delete the consumer: it is made again and no task is lost",
	}
}

// adjust changes what may be changed in a consumer that exists.
func (w *work) adjust(ctx context.Context, stream string, have, want jetstream.ConsumerConfig) error {
	for _, f := range []struct{ field, have, want string }{
		{"ack policy", have.AckPolicy.String(), want.AckPolicy.String()},
		{"deliver policy", strconv.Itoa(int(have.DeliverPolicy)), strconv.Itoa(int(want.DeliverPolicy))},
		{"priority groups", fmt.Sprint(have.PriorityGroups), fmt.Sprint(want.PriorityGroups)},
	} {
		if f.have != f.want {
			return consumerConflict(stream, f.field, f.have, f.want)
		}
	}
	next := have
	var changed []string
	set(&changed, "ack_wait", &next.AckWait, want.AckWait)
	set(&changed, "max_ack_pending", &next.MaxAckPending, want.MaxAckPending)
	set(&changed, "max_deliver", &next.MaxDeliver, want.MaxDeliver)
	set(&changed, "max_batch", &next.MaxRequestBatch, 0)
	set(&changed, "max_expires", &next.MaxRequestExpires, 0)
	set(&changed, "inactive_threshold", &next.InactiveThreshold, time.Duration(0))
	set(&changed, "filter_subject", &next.FilterSubject, "")
	if len(next.BackOff) > 0 || len(next.FilterSubjects) > 0 {
		next.BackOff, next.FilterSubjects = nil, nil
		changed = append(changed, "backoff and filter_subjects")
	}
	if len(changed) == 0 {
		return nil
	}
	err := w.retry(ctx, func(ctx context.Context) error {
		_, err := w.js.UpdateConsumer(ctx, stream, next)
		return err
	})
	if err != nil {
		return refused(fmt.Sprintf("change %v of consumer %s of stream %s", changed, want.Durable, stream), err)
	}
	w.log.WithField("stream", stream).Infof("consumer %s changed: %v", want.Durable, changed)
	return nil
}
