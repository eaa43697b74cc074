package partition

import (
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
)

// A record says how far its run has taken the two logs, and what is not after that is never looked
// at again. So a message that leaves no event must have done all that it does elsewhere before any
// record says so (ADR 0064):
//
//   - From its step until its completion is done the positions of the run stay before it, and the
//     run owes it.
//   - A run that is open, or has something to write, lets its other messages wait for that. In one
//     that is closed, or was never there, only a start can lead to a record: it waits, and nothing
//     else.
//   - An owner that ends meanwhile leaves the message to the next one, which finds it, and judges
//     it anew. A dead letter is written once for each place, whatever its reason.

// onlyOnce tells whether an effect without an event is lost if its message is not read again: no
// run has it open, and AnswerAgain does not repeat it.
func onlyOnce(e execution.Effect) bool {
	switch e.(type) {
	case execution.Dead, execution.EndChild:
		return true
	}
	return false
}

// owe keeps the run's positions before a message of a log until its completion is done. It is
// called before the completion is released.
func (p *Partition) owe(r *actor.Run, e *actor.Message) {
	if e.Log == noLog {
		return
	}
	r.Owing++
	p.owing++
	e.Kept = true
	e.Completion.OnDone(func() {
		e.Judged()
		r.Owing--
		p.owing--
		if r.Live() {
			r.Positions[e.Log] = r.Positions[e.Log].Later(e.Position)
		}
		p.mark(r)
	})
}
