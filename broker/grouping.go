package broker

import (
	"github.com/droverhq/drover/broker/natsconn"
)

// groupRecords is how many records are stored and synced together at most. They are answered
// together as well, so that a longer group makes its first records wait.
const groupRecords = 256

// grouping is how the records of a partition are published: in groups where each sync of the server
// counts.
func (b *env) grouping(partition int) natsconn.OutboxOptions {
	if b.o.Stage == nil {
		return natsconn.OutboxOptions{}
	}
	if err := b.o.Stage(b.ns.StreamHistory(partition)); err != nil {
		b.o.Logger.WithError(err).
			WithField("partition", partition).
			Debug("records are not committed in groups")
		return natsconn.OutboxOptions{}
	}
	return natsconn.OutboxOptions{Group: groupRecords}
}
