package partition

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

// takeOver makes this broker the only writer of the partition and finds out what its predecessor
// may have left undone. It runs before the loop does.
func (p *Partition) takeOver(ctx context.Context) error {
	if err := p.writeFence(ctx); err != nil {
		return err
	}
	if err := p.readCheckpoint(ctx); err != nil {
		return err
	}
	seen, err := p.meet(ctx)
	if err != nil {
		return err
	}
	lost, err := p.lostRecords(ctx)
	if err != nil {
		return err
	}
	if lost {
		p.readAgain()
	}
	damaged, err := p.damaged(ctx)
	damaged = damaged || lost
	if err == nil && damaged {
		err = p.meetOpen(ctx)
	}
	if err != nil {
		return err
	}
	for log, name := range []string{p.b.NS.StreamIn(p.n), p.b.NS.StreamSignals()} {
		filter := ""
		if log == signalLog {
			filter = p.b.NS.SignalsOf(p.n)
		}
		if err := p.openLog(ctx, log, name, filter, seen[log]); err != nil {
			return err
		}
	}
	p.recovery = p.intake.Effects.Enter(schemas.Position{Sequence: p.fence})
	return p.readBuried(ctx)
}

func (p *Partition) checkpointKey() string { return fmt.Sprintf("partition.%d", p.n) }

func (p *Partition) readCheckpoint(ctx context.Context) error {
	value, rev, err := p.b.Conn.KVGet(ctx, p.b.NS.BucketCheckpoints(), p.checkpointKey())
	switch {
	case errors.Is(err, natsconn.ErrNotFound):
		return nil
	case err != nil:
		if errors.Is(err, natsconn.ErrNoStream) {
			return fmt.Errorf("read the checkpoint: %w: %s", err, topology.Remake(p.b.NS))
		}
		return fmt.Errorf("read the checkpoint: %w", err)
	}
	if err := schemas.Unmarshal(value, &p.checkpointed); err != nil {
		return fmt.Errorf("read the checkpoint: %w", err)
	}
	p.checkpointRev = rev
	p.orderly = p.checkpointed.Handed != nil && p.checkpointed.Fence == p.before
	p.decisions.Inherit(p.checkpointed.Handed)
	p.checkpointed.Handed = nil
	p.intake.Effects.StartAt(schemas.Position{Sequence: min(p.checkpointed.Effects, p.fence)})
	return nil
}

// meet reads every record above the effects position: those runs may have effects that nobody
// performed (P-1). It returns the highest position in each log that any of them, or the checkpoint,
// has consumed.
func (p *Partition) meet(ctx context.Context) (seen [2]schemas.Position, err error) {
	seen = [2]schemas.Position{p.checkpointed.Inbox, p.checkpointed.Signals}
	options := natsconn.ReadOptions{
		FilterSubjects: []string{p.b.NS.AllRuns(p.n)},
		StartSeq:       p.intake.Effects.Position().Sequence + 1,
	}
	err = p.b.Reads.Scan(ctx, p.b.NS.StreamHistory(p.n), options, func(s natsconn.Stored) error {
		if !runs.IsRecord(&s) {
			return nil
		}
		var r schemas.Record
		if err := schemas.Unmarshal(s.Data, &r); err != nil {
			p.log.WithError(err).
				WithField("seq", s.Seq).
				Error("a record cannot be read; drover verify names its run")
			if _, wid, run, err := subject.ParseHistory(s.Subject); err == nil {
				p.met(wid, run) // damage.go tells what becomes of it
			}
			return nil
		}
		p.met(r.WorkflowID, r.Run)
		seen[inboxLog] = seen[inboxLog].Later(r.Inbox)
		seen[signalLog] = seen[signalLog].Later(r.Signals)
		return nil
	})
	if err != nil {
		return seen, fmt.Errorf("read the records since the last checkpoint: %w", err)
	}
	return seen, nil
}

// readBuried finds the signals above the checkpoint that a predecessor put into the dead letters:
// they count as consumed (P-12). A letter is stored after its signal, and so after the one at the
// checkpoint: older letters are not read.
func (p *Partition) readBuried(ctx context.Context) error {
	checkpoint := p.checkpointed.Signals
	if p.intake.Logs[signalLog].End <= checkpoint.Sequence {
		return nil
	}
	filter := p.b.NS.AllDeadOf(intake.Tail(p.n, signalLog)...)
	options := natsconn.ReadOptions{FilterSubjects: []string{filter}, HeadersOnly: true}
	if at := checkpoint.Time; at != 0 {
		first, err := p.b.Conn.FirstSince(ctx, p.b.NS.StreamDead(), filter,
			at.Time().Add(-env.ClockSkew))
		switch {
		case errors.Is(err, natsconn.ErrNotFound):
			return nil
		case err != nil:
			return fmt.Errorf("look for dead letters: %w", err)
		}
		options.StartSeq = first.Seq
	}
	err := p.b.Reads.Scan(ctx, p.b.NS.StreamDead(), options, func(s natsconn.Stored) error {
		p.intake.Letters.Wrote(s.Subject)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the dead letters: %w", err)
	}
	return nil
}

// backlogRead is called once everything is read that was in the logs at take-over. Only now is it
// known which effects are really open, and they are repeated. Until they are acknowledged the
// effects position stays where it was.
func (p *Partition) backlogRead() {
	met := p.recovered
	p.recovered = nil
	if len(met) > 0 {
		p.log.WithField("runs", len(met)).Info("repeating open effects")
	}
	p.toRepeat = met
	p.repeatSome()
}

// recovering tells whether effects that a predecessor may have left undone are still to be
// repeated.
func (p *Partition) recovering() bool { return p.recovered != nil || p.toRepeat != nil }

// repeat performs again every effect that the history showed as open when the run was loaded, and
// those of earlier runs of its id that were met. Repeats are harmless: tasks, alarms, decision
// tasks and messages to other workflows are recognised by those who receive them.
func (p *Partition) repeat(r *actor.Run, runs map[string]bool) {
	if r.Live() {
		for _, e := range r.State.OpenEffects(p.now()) {
			by := execution.SetBy(e)
			if by == 0 && !r.IsSettled() {
				// of an end that is not in the history yet, and may never be: its record causes it
				continue
			}
			if by <= r.Loaded {
				p.dispatch.EnsureConsumers(r, e, p.recovery)
				p.perform(r, actor.Effect{Effect: e}, p.recovery)
			}
		}
		p.recovery.Retain()
		r.Uncovered = append(r.Uncovered, p.recovery)
		p.mark(r)
		for id := range runs {
			if id != r.State.Run {
				p.repeatOld(r.WorkflowID, id, 0)
			}
		}
	}
}

// repeatOld performs again what an earlier run of a workflow id may have left undone when it
// closed. tries is how often that was tried before: one that is damaged is left as it is.
func (p *Partition) repeatOld(wid, id string, tries int) {
	p.recovery.Retain()
	env.ReadAsync(p.b, p.loop, func(ctx context.Context) (*runs.Run, error) {
		return p.loadRun(ctx, wid, id)
	}, func(l *runs.Run, err error) {
		if errors.Is(err, runs.ErrDamaged) && !errors.Is(err, runs.ErrLater) &&
			tries >= damagedTries {
			if r := p.runs[wid]; r == nil || r.Damage.Err == nil ||
				r.Damage.Err.Error() != err.Error() {
				// else it is told of
				p.sayDamaged(p.b.NS.History(p.n, wid, id), err)
			}
			p.recovery.Release()
			return
		}
		if err != nil {
			p.log.WithError(err).
				WithField("workflow", wid).Warn("a closed run cannot be read; trying again")
			p.loop.After(loadRetry, func() { p.repeatOld(wid, id, tries+1); p.recovery.Release() })
			return
		}
		if l != nil {
			for _, e := range l.State.OpenEffects(p.now()) {
				p.exchange(l.State, actor.Effect{Effect: e}, p.recovery)
			}
			p.alarms.DropStrange(wid, id)
		}
		p.recovery.Release()
	})
}
