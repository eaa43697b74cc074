package deadlines

import "github.com/droverhq/drover/schemas"

// Batches are the alarms that timer workers have fired and that are not answered yet. Each came
// with others in one message (ADR 0022).
type Batches struct{ open map[*Batch]struct{} }

// Batch is alarms that came together.
type Batch struct {
	answer    func(*schemas.RingsAnswer)
	open      int      // alarms without an outcome
	done      []uint64 // alarms to be told of
	answering bool     // an answer is under way
}

func newBatches() Batches { return Batches{open: make(map[*Batch]struct{})} }

// Add adds a batch of n alarms, which is answered by answer.
func (b *Batches) Add(n int, answer func(*schemas.RingsAnswer)) *Batch {
	g := &Batch{answer: answer, open: n}
	b.open[g] = struct{}{}
	return g
}

// Tell says when an answer is to be given.
type Tell int

// Tell now, after a while in which other outcomes are gathered, or not at all: it will be anyway.
const (
	TellNow Tell = iota
	TellLater
	TellAnyway
)

// Done notes that an alarm is not needed any more.
func (g *Batch) Done(seq uint64) Tell {
	g.open--
	g.done = append(g.done, seq)
	switch {
	case g.open == 0:
		return TellNow
	case !g.answering:
		g.answering = true
		return TellLater
	default:
		return TellAnyway
	}
}

// Answer answers what is known by now. sealed: this owner says nothing any more.
func (b *Batches) Answer(g *Batch, sealed bool) {
	g.answering = false
	if len(g.done) == 0 || sealed {
		return
	}
	g.answer(&schemas.RingsAnswer{Done: g.done})
	if g.done = nil; g.open == 0 {
		delete(b.open, g)
	}
}

// Refuse sends back the alarms that this owner will not answer any more.
func (b *Batches) Refuse() {
	for g := range b.open {
		g.answer(&schemas.RingsAnswer{Done: g.done, Refused: true})
	}
	clear(b.open)
}
