package partition

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/openruns"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// repairing is how many runs are folded at once after an unclean start.
const repairing = 256

// damaged tells whether tasks or alarms that a former owner counted as stored may be gone (P-8):
// the server is another one than that which acknowledged them, or the stream of alarms ends before
// the last of them. A server that was told to stop and started again, one that syncs every write,
// or several that hold each stream, lose nothing that they have acknowledged.
func (p *Partition) damaged(ctx context.Context) (bool, error) {
	c := &p.checkpointed
	p.server = p.b.Conn.NATS().ConnectedServerId()
	s, err := p.b.Conn.JetStream().Stream(ctx, p.b.NS.StreamAlarms(p.n))
	if err != nil {
		return false, fmt.Errorf("stream %s: %w", p.b.NS.StreamAlarms(p.n), err)
	}
	info := s.CachedInfo()
	p.replicated = info.Config.Replicas > 1
	if p.checkpointRev == 0 {
		p.written = p.server // nothing was counted as stored
		return false, nil
	}
	p.written, p.deadlines.Armed = c.Server, c.Alarms
	later := info.State.LastSeq < c.Alarms
	if later {
		p.deadlines.Armed = info.State.LastSeq
	}
	if !later && slices.Contains(p.b.Options.Predecessors, c.Server) {
		p.written = p.server // it has all that the other one had
		return false, nil
	}
	return later || c.Server != p.server && !p.replicated && !p.b.Options.Synced, nil
}

// meetOpen adds every open run to those whose effects are repeated, and every run that has
// continued as new without a follower: its record may be among what was lost.
func (p *Partition) meetOpen(ctx context.Context) error {
	// a filter costs more than the fences that it would leave out
	options := natsconn.ReadOptions{HeadersOnly: true}
	var runs openruns.Runs
	err := p.b.Reads.Scan(ctx, p.b.NS.StreamHistory(p.n), options, func(s natsconn.Stored) error {
		return runs.Note(s.Seq, s.Subject, s.Header.Get(schemas.StatusHeader))
	})
	if err != nil {
		return fmt.Errorf("look for open runs: %w", err)
	}
	for _, subjects := range []iter.Seq[string]{runs.Open(), runs.Owing()} {
		for subj := range subjects {
			_, wid, run, err := subject.ParseHistory(subj)
			if err != nil {
				p.log.WithError(err).
					WithField("subject", subj).Error(
					"a record stands on a subject that names no run; drover verify tells more")
				continue
			}
			p.met(wid, run)
		}
	}
	if n := runs.Len(); n > 0 {
		p.log.WithField("runs", n).Info(
			"the server is not the one that stored the tasks and alarms: repeating the effects of every open run")
	}
	return p.dropForeign(ctx)
}

// dropForeign deletes the alarms of runs that are not open: a server that was killed may come back
// with what it had deleted, and such an alarm may be due in a year (I15). Nobody else arms one: the
// partition is fenced.
func (p *Partition) dropForeign(ctx context.Context) error {
	var foreign []uint64
	err := p.b.Reads.Scan(ctx, p.b.NS.StreamAlarms(p.n), natsconn.ReadOptions{HeadersOnly: true},
		func(s natsconn.Stored) error {
			if _, wid, run, err := subject.ParseAlarm(s.Subject); err == nil &&
				!p.recovered[wid][run] {
				foreign = append(foreign, s.Seq)
			}
			return nil
		})
	if err != nil {
		return fmt.Errorf("look for alarms of closed runs: %w", err)
	}
	for _, seq := range foreign {
		p.alarms.Delete(seq)
	}
	return nil
}

func (p *Partition) met(wid, run string) {
	if p.recovered[wid] == nil {
		p.recovered[wid] = make(map[string]bool)
		p.unrepeated = append(p.unrepeated, wid)
	}
	p.recovered[wid][run] = true
}

// repeatSome repeats the effects of the next runs that were met, a bounded number at a time.
func (p *Partition) repeatSome() {
	for p.repeating < repairing && len(p.unrepeated) > 0 {
		wid := p.unrepeated[0]
		p.unrepeated = p.unrepeated[1:]
		runs := p.toRepeat[wid]
		delete(p.toRepeat, wid)
		p.repeating++
		r := p.get(wid)
		p.whenKept(r, func() {
			p.repeating--
			p.repeat(r, runs)
			p.repeatSome()
		}, func() {
			p.repeating--
			for id := range runs { // the earlier ones may be whole
				p.repeatOld(wid, id, 0)
			}
			p.repeatSome()
		})
	}
	if p.repeating == 0 && len(p.unrepeated) == 0 && p.toRepeat != nil {
		p.toRepeat, p.unrepeated = nil, nil
		p.written = p.server // once the checkpoint passes the recovery, this server has it all
		p.recovery.Release()
	}
}
