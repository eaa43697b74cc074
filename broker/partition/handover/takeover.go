package handover

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

// TakeOver makes this broker the only writer of the partition and finds out what its predecessor
// may have left undone. It runs before the loop does.
func (ho *Handover) TakeOver(ctx context.Context) error {
	if err := ho.writeFence(ctx); err != nil {
		return err
	}
	if err := ho.readCheckpoint(ctx); err != nil {
		return err
	}
	seen, err := ho.meet(ctx)
	if err != nil {
		return err
	}
	lost, err := ho.lostRecords(ctx)
	if err != nil {
		return err
	}
	if lost {
		ho.readAgain()
	}
	damaged, err := ho.damaged(ctx)
	damaged = damaged || lost
	if err == nil && damaged {
		err = ho.meetOpen(ctx)
	}
	if err != nil {
		return err
	}
	for log, name := range []string{ho.Env.NS.StreamIn(ho.Partition), ho.Env.NS.StreamSignals()} {
		filter := ""
		if log == intake.Signals {
			filter = ho.Env.NS.SignalsOf(ho.Partition)
		}
		if err := ho.host.OpenLog(ctx, log, name, filter, seen[log]); err != nil {
			return err
		}
	}
	ho.Recovery = ho.intake.Effects.Enter(schemas.Position{Sequence: ho.Fence})
	return ho.readBuried(ctx)
}

func (ho *Handover) checkpointKey() string { return fmt.Sprintf("partition.%d", ho.Partition) }

func (ho *Handover) readCheckpoint(ctx context.Context) error {
	value, rev, err := ho.Env.Conn.KVGet(ctx, ho.Env.NS.BucketCheckpoints(), ho.checkpointKey())
	switch {
	case errors.Is(err, natsconn.ErrNotFound):
		return nil
	case err != nil:
		if errors.Is(err, natsconn.ErrNoStream) {
			return fmt.Errorf("read the checkpoint: %w: %s", err, topology.Remake(ho.Env.NS))
		}
		return fmt.Errorf("read the checkpoint: %w", err)
	}
	if err := schemas.Unmarshal(value, &ho.Checkpointed); err != nil {
		return fmt.Errorf("read the checkpoint: %w", err)
	}
	ho.CheckpointRev = rev
	ho.Orderly = ho.Checkpointed.Handed != nil && ho.Checkpointed.Fence == ho.Before
	ho.decisions.Inherit(ho.Checkpointed.Handed)
	ho.Checkpointed.Handed = nil
	ho.intake.Effects.StartAt(schemas.Position{Sequence: min(ho.Checkpointed.Effects, ho.Fence)})
	return nil
}

// meet reads every record above the effects position: those runs may have effects that nobody
// performed (P-1). It returns the highest position in each log that any of them, or the checkpoint,
// has consumed.
func (ho *Handover) meet(ctx context.Context) (seen [2]schemas.Position, err error) {
	seen = [2]schemas.Position{ho.Checkpointed.Inbox, ho.Checkpointed.Signals}
	options := natsconn.ReadOptions{
		FilterSubjects: []string{ho.Env.NS.AllRuns(ho.Partition)},
		StartSeq:       ho.intake.Effects.Position().Sequence + 1,
	}
	err = ho.Env.Reads.Scan(
		ctx,
		ho.Env.NS.StreamHistory(ho.Partition),
		options,
		func(s natsconn.Stored) error {
			if !runs.IsRecord(&s) {
				return nil
			}
			var r schemas.Record
			if err := schemas.Unmarshal(s.Data, &r); err != nil {
				ho.Log.WithError(err).WithField("seq", s.Seq).
					Error("a record cannot be read; drover verify names its run")
				if _, wid, run, err := subject.ParseHistory(s.Subject); err == nil {
					ho.met(wid, run) // what cannot be followed is set aside
				}
				return nil
			}
			ho.met(r.WorkflowID, r.Run)
			seen[intake.Inbox] = seen[intake.Inbox].Later(r.Inbox)
			seen[intake.Signals] = seen[intake.Signals].Later(r.Signals)
			return nil
		},
	)
	if err != nil {
		return seen, fmt.Errorf("read the records since the last checkpoint: %w", err)
	}
	return seen, nil
}

// readBuried finds the signals above the checkpoint that a predecessor put into the dead letters:
// they count as consumed (P-12). A letter is stored after its signal, and so after the one at the
// checkpoint: older letters are not read.
func (ho *Handover) readBuried(ctx context.Context) error {
	checkpoint := ho.Checkpointed.Signals
	if ho.intake.Logs[intake.Signals].End <= checkpoint.Sequence {
		return nil
	}
	filter := ho.Env.NS.AllDeadOf(intake.Tail(ho.Partition, intake.Signals)...)
	options := natsconn.ReadOptions{FilterSubjects: []string{filter}, HeadersOnly: true}
	if at := checkpoint.Time; at != 0 {
		first, err := ho.Env.Conn.FirstSince(ctx, ho.Env.NS.StreamDead(), filter,
			at.Time().Add(-env.ClockSkew))
		switch {
		case errors.Is(err, natsconn.ErrNotFound):
			return nil
		case err != nil:
			return fmt.Errorf("look for dead letters: %w", err)
		}
		options.StartSeq = first.Seq
	}
	err := ho.Env.Reads.Scan(ctx, ho.Env.NS.StreamDead(), options, func(s natsconn.Stored) error {
		ho.intake.Letters.Wrote(s.Subject)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the dead letters: %w", err)
	}
	return nil
}

// BacklogRead is called once everything is read that was in the logs at take-over. Only now is it
// known which effects are really open, and they are repeated. Until they are acknowledged the
// effects position stays where it was.
func (ho *Handover) BacklogRead() {
	met := ho.Recovered
	ho.Recovered = nil
	if len(met) > 0 {
		ho.Log.WithField("runs", len(met)).Info("repeating open effects")
	}
	ho.toRepeat = met
	ho.repeatSome()
}

// Recovering tells whether effects that a predecessor may have left undone are still to be
// repeated.
func (ho *Handover) Recovering() bool { return ho.Recovered != nil || ho.toRepeat != nil }

// repeat performs again every effect that the history showed as open when the run was loaded, and
// those of earlier runs of its id that were met. Repeats are harmless: tasks, alarms, decision
// tasks and messages to other workflows are recognised by those who receive them.
func (ho *Handover) repeat(r *actor.Run, runs map[string]bool) {
	if r.Live() {
		for _, e := range r.State.OpenEffects(ho.host.Now()) {
			by := execution.SetBy(e)
			if by == 0 && !r.IsSettled() {
				// of an end that is not in the history yet, and may never be: its record causes it
				continue
			}
			if by <= r.Loaded {
				ho.dispatch.EnsureConsumers(r, e, ho.Recovery)
				ho.host.Perform(r, actor.Effect{Effect: e}, ho.Recovery)
			}
		}
		ho.Recovery.Retain()
		r.Uncovered = append(r.Uncovered, ho.Recovery)
		ho.host.Mark(r)
		for id := range runs {
			if id != r.State.Run {
				ho.repeatOld(r.WorkflowID, id, 0)
			}
		}
	}
}

// repeatOld performs again what an earlier run of a workflow id may have left undone when it
// closed. tries is how often that was tried before: one that is damaged is left as it is.
func (ho *Handover) repeatOld(wid, id string, tries int) {
	ho.Recovery.Retain()
	env.ReadAsync(ho.Env, ho.Loop, func(ctx context.Context) (*runs.Run, error) {
		return ho.host.LoadRun(ctx, wid, id)
	}, func(l *runs.Run, err error) {
		if errors.Is(err, runs.ErrDamaged) && !errors.Is(err, runs.ErrLater) &&
			tries >= env.DamagedTries {
			if r := ho.host.InMemory(wid); r == nil || !r.Load.IsUnreadable() ||
				r.Damage.Err.Error() != err.Error() {
				// else it is told of
				ho.host.SayDamaged(ho.Env.NS.History(ho.Partition, wid, id), err)
			}
			ho.Recovery.Release()
			return
		}
		if err != nil {
			ho.Log.WithError(err).WithField("workflow", wid).
				Warn("a closed run cannot be read; trying again")
			ho.Loop.After(env.LoadRetry,
				func() { ho.repeatOld(wid, id, tries+1); ho.Recovery.Release() })
			return
		}
		if l != nil {
			for _, e := range l.State.OpenEffects(ho.host.Now()) {
				ho.host.Exchange(l.State, actor.Effect{Effect: e}, ho.Recovery)
			}
			ho.alarms.DropStrange(wid, id)
		}
		ho.Recovery.Release()
	})
}
