package broker

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// deadReasons are those of the letters that programs of this version write.
var deadReasons = []string{
	deadUnknown, deadUndecodable, deadLostRecords, deadDamaged, deadForeign, deadTooLarge, dead.ReasonUndecodableTask, dead.ReasonUndecodableAlarm,
	execution.DeadClosedActivity, execution.DeadStaleToken, execution.DeadClosedWorkflow, execution.DeadLateDecision, execution.DeadInvalid,
	execution.DeadForeignList,
}

// countDead counts dead letters by the reason in their subjects. The server counts those of each reason that is known, without reading them.
// They are read if some are left over, which programs of other versions have written, or if the server does not count; and if only those
// behind one are asked for: it would have to look at each.
func (b *Broker) countDead(ctx context.Context, q *schemas.DeadRequest, filter string) (*schemas.DeadResponse, error) {
	counts, complete := map[string]int64{}, false
	if q.After == 0 {
		counts, complete = b.countReasons(ctx, q.Reason, filter)
	}
	if !complete {
		var err error
		if counts, err = b.readReasons(ctx, dead.Behind(q.After), filter); err != nil {
			return nil, unavailable(err)
		}
	}
	a := &schemas.DeadResponse{V: schemas.Version, Letters: []schemas.DeadEntry{}}
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		a.Counts = append(a.Counts, schemas.DeadCount{Reason: reason, Count: counts[reason]})
	}
	return a, nil
}

// countReasons has the server count the letters of one reason, or of each that is known. complete says that there are no others; as many
// of another version may be left out as letters came meanwhile.
func (b *Broker) countReasons(ctx context.Context, reason, filter string) (counts map[string]int64, complete bool) {
	reasons := deadReasons
	if reason != "" {
		reasons = []string{reason}
	}
	all, err := b.reads.CountDirect(ctx, b.ns.StreamDead(), filter)
	if err != nil {
		return nil, false
	}
	sum := uint64(0)
	counts = map[string]int64{}
	for _, reason := range reasons {
		n, err := b.reads.CountDirect(ctx, b.ns.StreamDead(), b.ns.Dead(reason)+".>")
		if err != nil {
			return nil, false
		}
		if n > 0 {
			counts[reason] = int64(n)
			sum += n
		}
	}
	return counts, sum >= all
}

// readReasons counts by reading the subjects.
func (b *Broker) readReasons(ctx context.Context, from uint64, filter string) (map[string]int64, error) {
	counts := map[string]int64{}
	options := natsconn.ReadOptions{FilterSubjects: []string{filter}, StartSeq: from, HeadersOnly: true}
	prefix := b.ns.Dead("")
	err := b.reads.Scan(ctx, b.ns.StreamDead(), options, func(m natsconn.Stored) error {
		reason, _, _ := strings.Cut(strings.TrimPrefix(m.Subject, prefix), ".")
		counts[reason]++
		return nil
	})
	return counts, err
}
