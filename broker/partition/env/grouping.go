package env

import (
	"github.com/droverhq/drover/broker/natsconn"
)

// groupRecords is how many records are stored and synced together at most. They are answered
// together as well, so that a longer group makes its first records wait.
const groupRecords = 256

// Grouping is how the records of a partition are published: in groups where each sync of the server
// counts.
func (e *Env) Grouping(partition int) natsconn.OutboxOptions {
	if e.Options.Stage == nil {
		return natsconn.OutboxOptions{}
	}
	if err := e.Options.Stage(e.NS.StreamHistory(partition)); err != nil {
		e.Options.Logger.WithError(err).WithField("partition", partition).
			Debug("records are not committed in groups")
		return natsconn.OutboxOptions{}
	}
	return natsconn.OutboxOptions{Group: groupRecords}
}
