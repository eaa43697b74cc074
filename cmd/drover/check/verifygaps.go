package check

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
)

// unreadable looks for records that the server counts and does not give out: it passes over a
// record whose checksum is wrong, without a word. If it was the last of its run, the chain of the
// others is whole. Only a stream with gaps is looked at: it is read once more, and what each run
// has is compared with what the server says that it has, before and after.
func (p *partitionCheck) unreadable(ctx context.Context) error {
	if !p.removed {
		return nil
	}
	before, err := p.counts(ctx)
	if err != nil {
		return err
	}
	read := make(map[string]uint64, len(before))
	o := natsconn.ReadOptions{FilterSubjects: []string{p.v.ns.AllRuns(p.n)}, HeadersOnly: true}
	err = p.v.conn.Scan(ctx, p.v.ns.StreamHistory(p.n), o, func(m natsconn.Stored) error {
		read[m.Subject]++
		return nil
	})
	if err != nil {
		return fmt.Errorf("partition %d: %w", p.n, err)
	}
	after, err := p.counts(ctx)
	if err != nil {
		return err
	}
	for subj, n := range before {
		if n = min(n, after[subj]); n <= read[subj] {
			continue // one that was removed meanwhile is in neither
		}
		_, id, run, err := subject.ParseHistory(subj)
		if err != nil {
			continue // told already
		}
		p.broken(checker.RuleRecord, id, run, 0, "%d of %d records cannot be read from the store",
			n-read[subj], n)
	}
	return nil
}

// counts is how many records each run has, in the server's index.
func (p *partitionCheck) counts(ctx context.Context) (map[string]uint64, error) {
	s, err := p.v.conn.JetStream().Stream(ctx, p.v.ns.StreamHistory(p.n))
	if err != nil {
		return nil, fmt.Errorf("partition %d: %w", p.n, err)
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(p.v.ns.AllRuns(p.n)))
	if err != nil {
		return nil, fmt.Errorf("partition %d: %w", p.n, err)
	}
	return info.State.Subjects, nil
}
