package topology

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
)

// Remains tells how many partitions a namespace has by the streams that are left of it, for one
// whose signals stream is gone. It is 0 if nothing is left that says so.
func Remains(ctx context.Context, conn *natsconn.Conn, ns subject.Namespace) (int, error) {
	if err := subject.ValidateNamespace(string(ns)); err != nil {
		return 0, fmt.Errorf("topology: %w", err)
	}
	ctx, stop := untilRefused(ctx, conn)
	defer stop()
	left, err := (&work{js: conn.JetStream(), log: logx.Or(nil)}).remains(ctx, &Namespace{Name: ns})
	if err = orRefused(ctx, err); err != nil {
		return 0, fmt.Errorf("topology: namespace %s: %w", ns, err)
	}
	if left == nil {
		return 0, nil
	}
	return left.Partitions, nil
}

// unknownRetention is that of a namespace which has lost what it said: nothing is purged until
// somebody says it again.
const unknownRetention = "forever"

// remains brings a namespace that is to be made to what is left of an earlier one of that name,
// which lost its signals stream: with another number of partitions nobody would find its workflows,
// and with less copies they would lose them. It is nil if nothing is left. What only the signals
// stream said is lost: what types, retention and description are.
func (w *work) remains(ctx context.Context, fresh *Namespace) (*Namespace, error) {
	streams, err := w.belongings(ctx, fresh.Name)
	if err != nil {
		return nil, err
	}
	var left *Namespace
	for _, s := range streams {
		c := &s.Config
		kind := kindOf(fresh.Name, c.Name)
		if kind != "history" && kind != "inbox" && kind != "alarms" {
			continue // no workflow lives there
		}
		p, err := strconv.Atoi(c.Metadata[metaPartitions])
		if err != nil || p < 1 || p > subject.MaxPartitions {
			continue
		}
		if left == nil {
			adopted := *fresh
			left = &adopted
			left.Partitions = p
		}
		switch kind {
		case "history":
			left.Replicas, left.MaxBytes, left.Compression = max(c.Replicas, 1), max(c.MaxBytes, 0),
				CompressionNone
			if c.Compression == jetstream.S2Compression {
				left.Compression = CompressionS2
			}
		case "alarms":
			left.Relaxed = c.PersistMode == jetstream.AsyncPersistMode
		}
	}
	return left, nil
}

// adopt is the namespace that is made over what is left: the options may say another number of
// copies and limit, as for one that is there, but not another number of partitions.
func (o Options) adopt(left *Namespace) (*Namespace, error) {
	if o.Partitions != 0 && o.Partitions != left.Partitions {
		return nil, &ConflictError{
			Stream: left.Name.StreamSignals(), Field: "the number of partitions",
			Have: strconv.Itoa(left.Partitions), Want: strconv.Itoa(o.Partitions),
			Hint: fmt.Sprintf(
				"the stream is gone, and the others of the namespace are there: leave "+
					"Partitions out or set it to %d, or delete the namespace first",
				left.Partitions),
		}
	}
	ns := *left
	ns.Replicas = cmp.Or(o.Replicas, ns.Replicas)
	if o.MaxBytes != 0 {
		ns.MaxBytes = max(o.MaxBytes, 0)
	}
	if o.Compression != "" || ns.Replicas > 1 {
		ns.Compression = cmp.Or(o.Compression, CompressionNone)
	}
	// How long closed runs were to be kept is lost. With the defaults the master would purge what
	// was perhaps to be kept for ever.
	ns.FlowRetention, ns.Retention = cmp.Or(o.FlowRetention, unknownRetention), cmp.Or(o.Retention,
		unknownRetention)
	return &ns, nil
}
