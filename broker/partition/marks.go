package partition

import "github.com/droverhq/drover/broker/partition/actor"

// marks are the runs that are looked at after a batch of the loop: something has happened to them.
type marks struct {
	now    []*actor.Run
	before []*actor.Run // the memory of the round before
}

// add marks a run, once.
func (m *marks) add(r *actor.Run) {
	if !r.Marked {
		r.Marked = true
		m.now = append(m.now, r)
	}
}

func (m *marks) any() bool { return len(m.now) > 0 }

// each unmarks all and calls f for each; f may mark others, and the same. It reports false, and
// calls nobody, once the partition is sealed.
func (m *marks) each(sealed func() bool, f func(*actor.Run)) bool {
	all := m.now
	m.now, m.before = m.before[:0], nil
	if sealed() {
		return false
	}
	for i, r := range all {
		r.Marked = false
		f(r)
		all[i] = nil
	}
	m.before = all
	return true
}
