package deciders

import "time"

const (
	// ProbeAfter is how old a question or an offer is when its worker is probed, and the least time
	// between two probes.
	ProbeAfter = 100 * time.Millisecond
	// probeShare: one that is older is probed for again when it has become older by a part of so
	// many.
	probeShare = 4
	// YoungTask is how old a decision task may be that anybody may have taken, to be asked again.
	YoungTask = 2 * time.Second
	// mostProbes bounds the workers that are probed at a time.
	mostProbes = 16
)

// Waits is for how long somebody has been waited for, at least: the youngest of what is old enough.
type Waits struct {
	workers map[string]time.Duration // by name
	types   map[string]time.Duration // whoever decides for a type
	lists   map[string]time.Duration // whoever takes tasks of a list
	again   time.Duration            // in how long somebody else may have to be added; 0 for never
}

// ForWorker notes the age of what one worker has.
func (s *Waits) ForWorker(name string, age time.Duration) { s.note(&s.workers, name, age) }

// ForType notes the age of a decision task that anybody may have who decides for a type.
func (s *Waits) ForType(typ string, age time.Duration) {
	if age <= YoungTask {
		s.note(&s.types, typ, age)
	}
}

// ForList notes the age of an offer that anybody may have who takes tasks of a list.
func (s *Waits) ForList(list string, age time.Duration) { s.note(&s.lists, list, age) }

func (s *Waits) note(m *map[string]time.Duration, key string, age time.Duration) {
	if age < ProbeAfter {
		s.again = ProbeAfter
		return
	}
	if *m == nil {
		*m = make(map[string]time.Duration)
	}
	if before, ok := (*m)[key]; !ok || age < before {
		(*m)[key] = age
	}
}

// of tells for how long a worker has been silent, if it can be probed.
func (s *Waits) of(w *Worker) (age time.Duration, overdue bool) {
	if len(w.Types) == 0 {
		return 0, false
	}
	note := func(d time.Duration, ok bool) {
		if ok && (!overdue || d < age) {
			age, overdue = d, true
		}
	}
	d, ok := s.workers[w.Name]
	note(d, ok)
	for _, typ := range w.Types {
		d, ok = s.types[typ]
		note(d, ok)
	}
	for _, list := range w.Lists {
		d, ok = s.lists[list]
		note(d, ok)
	}
	return age, overdue
}

// Probes are the workers that have been silent for too long, and in how long it is to be looked for
// others; 0 for never. Those that are returned count as probed now.
func (g *Registry) Probes(s *Waits) (due []*Worker, again time.Duration) {
	again = s.again
	now := time.Now()
	for _, w := range g.byName { // begins anywhere, so that all have their turn
		age, overdue := s.of(w)
		if !overdue {
			continue
		}
		since := now.Sub(w.probedAt)
		// by how old it was when it was probed for
		wait := max(ProbeAfter, (age-since)/probeShare) - since
		switch {
		case wait > 0:
		case len(due) == mostProbes:
			wait = ProbeAfter
		default:
			w.probedAt, wait = now, max(ProbeAfter, age/probeShare)
			due = append(due, w)
		}
		if again == 0 || wait < again {
			again = wait
		}
	}
	return due, again
}
