// Package openruns finds out which runs of a history are open, by the headers of its records. The owner of a partition that has
// to repair it, the audit and the deletion of a namespace ask.
//
// The records are read in their order, each once. To ask the server for the last record of each run alone looks cheaper, but it
// answers that in one piece: it loads every block that holds a last record, keeps it, and lets everybody else wait. For a million
// finished runs that took longer than any question may.
//
// Invariants:
//   - A message without a status is no record and changes nothing.
//   - A run that has continued as new is closed. It owes the run that follows it, until any later run of its workflow id has a
//     record: at most one run of an id does. If it counted as open for ever, a chain of ten thousand runs would be ten thousand
//     open ones to whoever repeats their effects.
package openruns

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/droverhq/drover/schemas"
)

// Runs are those of one partition. The zero value is that of an empty history. One goroutine uses it.
type Runs struct {
	open  map[string]uint64 // where the last record of each stands, by subject
	owing map[string]string // subjects of runs that have continued as new and have no follower yet, by that of their workflow id
}

// Note takes the next record: its sequence in the stream, its subject and its header [schemas.StatusHeader], empty if it has none.
func (r *Runs) Note(seq uint64, subject, header string) {
	status := schemas.HeaderStatus(header)
	if status == "" {
		return
	}
	if r.open == nil {
		r.open, r.owing = make(map[string]uint64), make(map[string]string)
	}
	workflow := subject[:strings.LastIndexByte(subject, '.')+1]
	delete(r.owing, workflow)
	if !status.Closed() {
		r.open[subject] = seq
		return
	}
	delete(r.open, subject)
	if status == schemas.StatusContinuedAsNew {
		r.owing[workflow] = subject
	}
}

// Open are the subjects of the runs that are open, in the order of their last records. Whoever reads the runs in this order has
// the server load each block of the history once; in any other it loads, and keeps, as many as there are (ADR 0048).
func (r *Runs) Open() []string {
	type last struct {
		seq     uint64
		subject string
	}
	all := make([]last, 0, len(r.open))
	for subject, seq := range r.open {
		all = append(all, last{seq, subject})
	}
	slices.SortFunc(all, func(a, b last) int { return cmp.Compare(a.seq, b.seq) })
	subjects := make([]string, len(all))
	for i := range all {
		subjects[i] = all[i].subject
	}
	return subjects
}

// Owing are the subjects of the runs that have continued as new and whose follower has no record yet, in no order.
func (r *Runs) Owing() iter.Seq[string] { return maps.Values(r.owing) }

// Len is how many subjects are remembered.
func (r *Runs) Len() int { return len(r.open) + len(r.owing) }
