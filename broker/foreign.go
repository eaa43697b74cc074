package broker

import (
	"bytes"
	"context"
	"fmt"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/subject"
)

// Whoever asks may name any subject for the answer, and who answers publishes there by his own right: NATS does not check
// reply subjects. So that nobody has brokers, other servers, or JetStream, write where he has no right himself:
//
//   - Nobody answers to a subject of Drover or of the server: brokers, the master, the service for namespaces, workers (subject.Answerable).
//   - What the server gives out, or says itself, is refused where requests are heard (natsconn.Given),
//     and in the inbox and the signals.
//   - Messages of an inbox name their subject, which no answer does (natsconn.HeaderSubject); only activity workers, who have the
//     right to publish theirs, need not.
//   - What lies on the subject of a run and is no record is passed over (runs.IsRecord).
//   - An acknowledgement of JetStream is no signal (isAnswer).
//
// What is left: a signal with the text of some other answer, by somebody who may ask for it, and the trouble that a foreign
// message in a history makes, whose owner takes over anew. Users that are not trusted belong into an account of their own.

// loadPast reads the latest run of a workflow id where the latest message is a stray.
func (b *Broker) loadPast(ctx context.Context, partition int, wid string, foreign *natsconn.Stored) (*loaded, error) {
	latest := ""
	for from, more := uint64(1), true; more; {
		var page []natsconn.Stored
		var err error
		if page, more, err = b.reads.BatchGet(ctx, b.ns.StreamHistory(partition), b.ns.HistoryOfWorkflow(partition, wid), from, pageRecords); err != nil {
			return nil, fmt.Errorf("read behind a stray message: %w", err)
		}
		for i := range page {
			from = page[i].Seq + 1
			if runs.IsRecord(&page[i]) {
				latest = page[i].Subject
			}
		}
		more = more && len(page) > 0
		if !more && from <= foreign.Seq {
			return nil, fmt.Errorf("%w: a replica shows workflow %q up to record %d only, and its leader %d", natsconn.ErrTimeout, wid, from-1, foreign.Seq)
		}
	}
	b.o.Logger.WithField("workflow", wid).Warnf("message %d on %s is no record: somebody has published it; it is passed over", foreign.Seq, foreign.Subject)
	if latest == "" {
		return nil, nil
	}
	_, _, run, err := subject.ParseHistory(latest)
	if err != nil {
		return nil, err
	}
	return b.loadRun(ctx, partition, wid, run, false)
}

var acknowledgement = []byte(`{"stream":"drover-`)

// isAnswer tells whether the body of a signal is an acknowledgement of JetStream, of a stream of Drover.
func isAnswer(body []byte) bool {
	return bytes.HasPrefix(body, acknowledgement) && bytes.Contains(body, []byte(`"seq":`)) && len(body) < 512
}
