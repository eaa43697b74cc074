package deadlines

import "github.com/droverhq/drover/internal/compactmap"

// Passivated are the passivated runs of a partition, by workflow id.
type Passivated struct {
	kept   *compactmap.Map[struct{}]
	packed []byte // memory to pack one
}

// NewPassivated returns an empty one.
func NewPassivated() Passivated {
	return Passivated{
		kept: compactmap.New[struct{}](compactmap.MaxLen), packed: make([]byte, 0, 128),
	}
}

// Keep keeps a run in place of what was kept of its workflow id. One that has no room is forgotten.
func (p *Passivated) Keep(wid string, k *Run) {
	p.Drop(wid)
	p.kept.Add(wid, k.pack(p.packed[:0]))
}

// Drop forgets what was kept of a workflow id, if there is anything.
func (p *Passivated) Drop(wid string) {
	if id, ok := p.kept.Find(wid); ok {
		p.kept.Delete(id)
	}
}

// Has tells whether a run of a workflow id is kept.
func (p *Passivated) Has(wid string) bool {
	_, ok := p.kept.Find(wid)
	return ok
}

// Take takes what is kept of a workflow id out; nil if nothing is.
func (p *Passivated) Take(wid string) *Run {
	id, ok := p.kept.Find(wid)
	if !ok {
		return nil
	}
	k := unpack(p.kept.More(id))
	p.kept.Delete(id)
	return k
}

// Len is how many are kept.
func (p *Passivated) Len() int { return p.kept.Len() }
