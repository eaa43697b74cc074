package partition

import (
	"github.com/droverhq/drover/broker/partition/ahead"
	"github.com/droverhq/drover/broker/partition/alarms"
	"github.com/droverhq/drover/broker/partition/cache"
	"github.com/droverhq/drover/broker/partition/decisions"
	"github.com/droverhq/drover/broker/partition/dispatch"
	"github.com/droverhq/drover/broker/partition/exchange"
	"github.com/droverhq/drover/broker/partition/handover"
	"github.com/droverhq/drover/broker/partition/inspect"
	"github.com/droverhq/drover/broker/partition/large"
	"github.com/droverhq/drover/broker/partition/locking"
	"github.com/droverhq/drover/broker/partition/probes"
	"github.com/droverhq/drover/broker/partition/repeats"
	"github.com/droverhq/drover/broker/partition/replays"
	"github.com/droverhq/drover/broker/partition/writer"
)

// parts are the packages below this one: each owns its state, and knows of the partition what its
// Host says. Those that call each other directly are made with each other.
type parts struct {
	writer    *writer.Writer
	cache     *cache.Cache
	dispatch  *dispatch.Dispatch
	exchange  *exchange.Exchange
	alarms    *alarms.Alarms
	replays   *replays.Replays
	large     *large.Large
	inspector *inspect.Inspector
	keys      *locking.Keys
	decisions *decisions.Decisions
	repeats   *repeats.Repeats
	ahead     *ahead.Ahead
	probes    *probes.Probes
	handover  *handover.Handover

	standing standing // no package of its own
}

func newParts(p *Partition) parts {
	h := host{p}
	q := parts{
		writer: writer.New(h, p.Owner), cache: cache.New(h, p.Owner, &p.deadlines),
		dispatch: dispatch.New(h, p.Owner), alarms: alarms.New(h, p.Owner, &p.deadlines),
		replays: replays.New(h, p.Owner), large: large.New(h, p.Owner),
		inspector: inspect.New(h, p.Owner), keys: locking.New(h, p.Owner),
		decisions: decisions.New(h, p.Owner), repeats: repeats.New(h, p.Owner),
	}
	q.exchange = exchange.New(h, p.Owner, q.dispatch)
	q.ahead = ahead.New(h, p.Owner, q.decisions, q.dispatch)
	q.probes = probes.New(h, p.Owner, q.decisions, q.dispatch, q.ahead)
	q.handover = handover.New(h, p.Owner, handover.Parts{
		Lease: p.lease, Intake: &p.intake, Deadlines: &p.deadlines, Decisions: q.decisions,
		Dispatch: q.dispatch, Alarms: q.alarms,
	})
	return q
}
