package broker

import (
	"context"

	"github.com/nats-io/nats.go/micro"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// deadReasons are those of the letters that programs of this version write.
var deadReasons = []string{
	deadUnknown, deadUndecodable, deadLostRecords, deadDamaged, deadForeign, deadTooLarge,
	dead.ReasonUndecodableTask, dead.ReasonUndecodableAlarm,
	execution.DeadClosedActivity, execution.DeadStaleToken, execution.DeadClosedWorkflow,
	execution.DeadLateDecision, execution.DeadInvalid,
	execution.DeadForeignList,
}

// serveDead lists or counts dead letters.
func (b *Broker) serveDead(r micro.Request) {
	var q schemas.DeadRequest
	if err := requested(r, &q); err != nil {
		b.refuse(r, invalid(err))
		return
	}
	letters := &dead.Reader{Conn: b.Reads, Namespace: b.NS, Reasons: deadReasons}
	b.scan(r, func(ctx context.Context) (any, error) {
		if q.Count {
			return letters.Count(ctx, &q)
		}
		return letters.List(ctx, &q, runs.Limit(q.Limit), b.BodyLimit()/2)
	})
}
