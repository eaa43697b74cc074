package partition

import (
	"context"
	"testing"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/handover"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/schemas"
)

// shortStream has lost its end, and all else.
type shortStream struct{ intake.Streams }

func (shortStream) StreamState(context.Context, string) (first, last uint64, err error) {
	return 1, 0, nil
}

// A log of a new incarnation is read from its beginning. What the checkpoint has of it is consumed all the same, and nobody hears of it again.
func TestWhatTheCheckpointHasIsLeft(t *testing.T) { // P-9
	for _, tc := range []struct {
		seq  uint64
		at   schemas.Timestamp
		left bool
	}{
		{9, 99, true}, {10, 100, true}, {11, 100, false}, {3, 101, false},
	} {
		p := &Partition{Owner: env.Owner{Env: &env.Env{}}, parts: parts{handover: &handover.Handover{}}}
		r := &actor.Run{WorkflowID: "o"}
		r.Load.Begin()
		p.keep(r)
		p.handover.Checkpointed.Inbox = schemas.Position{Sequence: 10, Time: 100}
		in, lost, err := intake.Open(t.Context(), shortStream{}, intake.Place{
			Number: inboxLog, Checkpoint: p.handover.Checkpointed.Inbox, Witness: p.handover.Checkpointed.Inbox,
		})
		if lost != 1 || err != nil {
			t.Fatalf("incarnation %d, %v", lost, err)
		}
		p.Env.RecordLimit.Store(1 << 20)
		p.takeMessage(in, &actor.Opened{Message: &actor.Message{WorkflowID: "o", At: tc.at, Event: execution.Child{Report: &schemas.ChildReport{}}, Log: inboxLog}, Seq: tc.seq})
		if left := len(p.cache.InMemory("o").Mailbox) == 0; left != tc.left || in.At() != tc.seq {
			t.Errorf("message %d of %d: left %v, read up to %d; want %v, and it", tc.seq, tc.at, left, in.At(), tc.left)
		}
	}
}
