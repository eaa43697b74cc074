package broker

import (
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/inspect"
	"github.com/droverhq/drover/schemas"
	"github.com/nats-io/nats.go/micro"
)

// serveAudit passes a question of an audit on to the owner of the partition, who answers the
// requester itself.
func (b *Broker) serveAudit(r micro.Request) {
	var q schemas.AuditRequest
	if err := env.DecodeRequest(r, &q); err != nil {
		b.refuse(r, env.Invalid(err))
		return
	}
	if err := b.validateAudit(&q); err != nil {
		b.refuse(r, err)
		return
	}
	if err := b.Conn.PublishReply(b.NS.Owner(q.Partition), r.Reply(),
		requestHeader(inspect.VerbAudit, content(r)), r.Data()); err != nil {
		b.refuse(r, env.Unavailable(err))
		return
	}
	b.Options.Stats.Passed(r.Reply())
}

func (b *Broker) validateAudit(q *schemas.AuditRequest) *schemas.Error {
	if q.Partition < 0 || q.Partition >= b.Options.Partitions {
		return schemas.Errorf(schemas.CodeInvalid, "partition %d: the namespace has %d, from 0",
			q.Partition, b.Options.Partitions).InField("partition")
	}
	if len(q.Workflows) > schemas.MaxAudit {
		return schemas.Errorf(schemas.CodeInvalid, "%d workflows; want at most %d",
			len(q.Workflows), schemas.MaxAudit).InField("workflows").WithHint("ask several times")
	}
	for _, run := range q.Runs {
		if err := schemas.ValidateID("runs", run); run != "" && err != nil {
			return schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("runs")
		}
	}
	for _, wid := range q.Workflows {
		if err := schemas.ValidateID("workflows", wid); err != nil {
			return schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("workflows")
		}
		if p := b.PartitionOf(wid); p != q.Partition {
			return schemas.Errorf(schemas.CodeInvalid, "workflow %q belongs to partition %d",
				wid, p).InField("workflows")
		}
	}
	return nil
}
