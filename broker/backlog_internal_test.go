package broker

import (
	"testing"

	"github.com/droverhq/drover/schemas"
)

// Behind a lost end the inbox is read from its beginning: what was read before says nothing of how far that is.
func TestBacklogBehindALostEnd(t *testing.T) {
	inbox := &intake{log: inboxLog, from: 1, end: 3, read: schemas.Position{Sequence: 9}}
	p := &partition{intakes: [2]*intake{inbox, {log: signalLog}}}
	for _, done := range []bool{false, false, false, true} {
		if got := p.backlogDone(); got != done {
			t.Errorf("at %d of %d: got %v, want %v", inbox.at, inbox.end, got, done)
		}
		inbox.at++
	}
}
