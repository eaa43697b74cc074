package handover_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/deadlines"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/handover"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/schemas"
)

// A checkpoint says up to where all is done, in each log and of the effects, and names the highest
// record that is committed, in whatever order the records were acknowledged.
func TestWhatACheckpointSays(t *testing.T) { // P-1, P-9
	in, lines := &intake.Intake[*actor.Message]{}, deadlines.New[*actor.Run]()
	in.Logs = [2]*intake.Log{{}, {Number: intake.Signals}}
	ho := handover.New(nil, env.Owner{}, handover.Parts{Intake: in, Deadlines: &lines})
	ho.Fence, lines.Armed = 4, 9
	inbox, read := in.Logs[intake.Inbox].Enter(20, 1)
	_, unread := in.Logs[intake.Inbox].Enter(21, 2)
	signal, heard := in.Logs[intake.Signals].Enter(30, 3)
	first := in.Effects.Enter(schemas.Position{Sequence: 5})
	second := in.Effects.Enter(schemas.Position{Sequence: 6})
	hash := func(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }
	want := schemas.Checkpoint{Fence: 4, Alarms: 9}
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"nothing is done", func() {}},
		{"record 6 is acknowledged", func() {
			ho.Reached(6, hash(6))
			want.History, want.Witness = 6, hex.EncodeToString(hash(6)[:16])
		}},
		{"record 5 is acknowledged late", func() { ho.Reached(5, hash(5)) }},
		{"the effects of record 6 are stored", second.Release},
		{"those of record 5 are, too", func() { first.Release(); want.Effects = 6 }},
		{"of the inbox the second is consumed", unread.Release},
		{"of the signals the first is consumed", func() { heard.Release(); want.Signals = signal }},
		{"of the inbox the first is, too", func() {
			read.Release()
			want.Inbox = schemas.Position{Incarnation: inbox.Incarnation, Sequence: 21, Time: 2}
		}},
	} {
		if step.do(); ho.Positions() != want {
			t.Errorf("%s: got %+v, want %+v", step.name, ho.Positions(), want)
		}
	}
}
