package handover

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
func (ho *Handover) damaged(ctx context.Context) (bool, error) {
	c := &ho.Checkpointed
	ho.Server = ho.Env.Conn.NATS().ConnectedServerId()
	s, err := ho.Env.Conn.JetStream().Stream(ctx, ho.Env.NS.StreamAlarms(ho.Partition))
	if err != nil {
		return false, fmt.Errorf("stream %s: %w", ho.Env.NS.StreamAlarms(ho.Partition), err)
	}
	info := s.CachedInfo()
	ho.Replicated = info.Config.Replicas > 1
	if ho.CheckpointRev == 0 {
		ho.written = ho.Server // nothing was counted as stored
		return false, nil
	}
	ho.written, ho.deadlines.Armed = c.Server, c.Alarms
	later := info.State.LastSeq < c.Alarms
	if later {
		ho.deadlines.Armed = info.State.LastSeq
	}
	if !later && slices.Contains(ho.Env.Options.Predecessors, c.Server) {
		ho.written = ho.Server // it has all that the other one had
		return false, nil
	}
	return later || c.Server != ho.Server && !ho.Replicated && !ho.Env.Options.Synced, nil
}

// meetOpen adds every open run to those whose effects are repeated, and every run that has
// continued as new without a follower: its record may be among what was lost.
func (ho *Handover) meetOpen(ctx context.Context) error {
	// a filter costs more than the fences that it would leave out
	options := natsconn.ReadOptions{HeadersOnly: true}
	var runs openruns.Runs
	err := ho.Env.Reads.Scan(ctx, ho.Env.NS.StreamHistory(ho.Partition), options,
		func(s natsconn.Stored) error {
			return runs.Note(s.Seq, s.Subject, s.Header.Get(schemas.StatusHeader))
		})
	if err != nil {
		return fmt.Errorf("look for open runs: %w", err)
	}
	for _, subjects := range []iter.Seq[string]{runs.Open(), runs.Owing()} {
		for subj := range subjects {
			_, wid, run, err := subject.ParseHistory(subj)
			if err != nil {
				ho.Log.WithError(err).WithField("subject", subj).Error(
					"a record stands on a subject that names no run; drover verify tells more")
				continue
			}
			ho.met(wid, run)
		}
	}
	if n := runs.Len(); n > 0 {
		ho.Log.WithField("runs", n).Info(
			"the server is not the one that stored the tasks and alarms: repeating the effects of every open run")
	}
	return ho.dropForeign(ctx)
}

// dropForeign deletes the alarms of runs that are not open: a server that was killed may come back
// with what it had deleted, and such an alarm may be due in a year (I15). Nobody else arms one: the
// partition is fenced.
func (ho *Handover) dropForeign(ctx context.Context) error {
	var foreign []uint64
	err := ho.Env.Reads.Scan(
		ctx,
		ho.Env.NS.StreamAlarms(ho.Partition),
		natsconn.ReadOptions{HeadersOnly: true},
		func(s natsconn.Stored) error {
			if _, wid, run, err := subject.ParseAlarm(s.Subject); err == nil &&
				!ho.Recovered[wid][run] {
				foreign = append(foreign, s.Seq)
			}
			return nil
		},
	)
	if err != nil {
		return fmt.Errorf("look for alarms of closed runs: %w", err)
	}
	for _, seq := range foreign {
		ho.alarms.Delete(seq)
	}
	return nil
}

func (ho *Handover) met(wid, run string) {
	if ho.Recovered[wid] == nil {
		ho.Recovered[wid] = make(map[string]bool)
		ho.unrepeated = append(ho.unrepeated, wid)
	}
	ho.Recovered[wid][run] = true
}

// repeatSome repeats the effects of the next runs that were met, a bounded number at a time.
func (ho *Handover) repeatSome() {
	for ho.repeating < repairing && len(ho.unrepeated) > 0 {
		wid := ho.unrepeated[0]
		ho.unrepeated = ho.unrepeated[1:]
		runs := ho.toRepeat[wid]
		delete(ho.toRepeat, wid)
		ho.repeating++
		r := ho.host.Get(wid)
		ho.host.WhenKept(r, func() {
			ho.repeating--
			ho.repeat(r, runs)
			ho.repeatSome()
		}, func() {
			ho.repeating--
			for id := range runs { // the earlier ones may be whole
				ho.repeatOld(wid, id, 0)
			}
			ho.repeatSome()
		})
	}
	if ho.repeating == 0 && len(ho.unrepeated) == 0 && ho.toRepeat != nil {
		ho.toRepeat, ho.unrepeated = nil, nil
		ho.written = ho.Server // once the checkpoint passes the recovery, this server has it all
		ho.Recovery.Release()
	}
}
