package partition

import (
	"time"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/repeats"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/schemas"
)

// dropRepeat answers a message that the chain has had, and does nothing else.
func (p *Partition) dropRepeat(r *actor.Run, e *actor.Message) {
	if e.Log != noLog {
		r.Positions[e.Log] = r.Positions[e.Log].Later(e.Position)
	}
	g := actor.Group{Completions: []*watermark.Completion{e.Completion}}
	for _, f := range r.State.Confirm(e.Event) {
		g.Effects = append(g.Effects, actor.Effect{Effect: f, Cause: e})
	}
	switch q := requestIn(e.Event); {
	case e.Answer == nil:
	case q != nil:
		a := &schemas.AckResponse{V: schemas.Version, Run: r.State.Run}
		g.Answers = append(g.Answers, func() { p.Env.Respond(q.ReplyTo, q.Content, a) })
	default: // a start with a signal
		e.Verdict = actor.Verdict{Run: r.State.Run}
		g.Answers = append(g.Answers, func() { e.Answer(r, nil) })
	}
	p.queue(r, g)
}

// ageRepeats forgets, now and then, what is older than ten minutes. In the first ten minutes of a
// term nothing is: what waits in the logs may be as old as the time without an owner was long.
func (p *Partition) ageRepeats() {
	ticks := p.deadlines.Usage.Ticks()
	if ticks > p.cache.InTicks(repeats.RememberFor.Std()) &&
		ticks%p.cache.InTicks(time.Minute) == 0 {
		p.repeats.Age()
	}
}
