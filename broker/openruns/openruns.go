// Package openruns finds out which runs of a history are open, by the headers of its records. The
// owner of a partition that has to repair it, the audit and the deletion of a namespace ask.
//
// The records are read in their order, each once. To ask the server for the last record of each run
// alone looks cheaper, but it answers that in one piece: it loads every block that holds a last
// record, keeps it, and lets everybody else wait. For a million finished runs that took longer than
// any question may.
//
// Invariants:
//   - A message without a status is no record and changes nothing.
//   - A run that has continued as new is closed. It owes the run that follows it, until any later
//     run of its workflow id has a record: at most one run of an id does. If it counted as open for
//     ever, a chain of ten thousand runs would be ten thousand open ones to whoever repeats their
//     effects.
//   - Of an open run some 60 bytes are kept, without a pointer among them. Those who ask scan a
//     history, and leave garbage with each record: strings that stay between it hold down many
//     times their own memory (ADR 0050).
package openruns

import (
	"cmp"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/droverhq/drover/internal/compactmap"
	"github.com/droverhq/drover/schemas"
)

// ErrTooMany reports more open runs than a partition can have: [compactmap.MaxLen].
var ErrTooMany = errors.New("more open runs than are remembered of one partition")

// Runs are those of one partition. The zero value is that of an empty history. One goroutine uses
// it.
type Runs struct {
	prefix string // of all subjects: what is before the workflow id
	// where the last record of each stands, by its subject without the prefix
	open *compactmap.Map[uint64]
	// subjects of runs that have continued as new and have no follower yet, by that of their
	// workflow id
	owing map[string]string
}

// Note takes the next record: its sequence in the stream, its subject and its header
// [schemas.StatusHeader], empty if it has none. It fails with [ErrTooMany] alone.
func (r *Runs) Note(seq uint64, subject, header string) error {
	status := schemas.HeaderStatus(header)
	if status == "" {
		return nil
	}
	workflow := subject[:strings.LastIndexByte(subject, '.')+1]
	if r.open == nil {
		r.open, r.owing = compactmap.New[uint64](compactmap.MaxLen), make(map[string]string)
		r.prefix = workflow[:strings.LastIndexByte(strings.TrimSuffix(workflow, "."), '.')+1]
	}
	delete(r.owing, workflow)
	name := r.name(subject)
	id, known := r.open.Find(name)
	if status.Closed() {
		if known {
			r.open.Delete(id)
		}
		if status == schemas.StatusContinuedAsNew {
			r.owing[workflow] = subject
		}
		return nil
	}
	if !known {
		if id, known = r.open.Add(name, nil); !known {
			return ErrTooMany
		}
	}
	*r.open.At(id) = seq
	return nil
}

// strange is before the whole subject where it has another prefix. No workflow id begins with it in
// a subject.
const strange = "."

func (r *Runs) name(subject string) string {
	if name, ok := strings.CutPrefix(subject, r.prefix); ok && !strings.HasPrefix(name, strange) {
		return name
	}
	return strange + subject
}

func (r *Runs) subject(name []byte) string {
	if whole, ok := strings.CutPrefix(string(name), strange); ok {
		return whole
	}
	return r.prefix + string(name)
}

// Open are the subjects of the runs that are open, in the order of their last records. Whoever
// reads the runs in this order has the server load each block of the history once; in any other it
// loads, and keeps, as many as there are (ADR 0048). No record may be noted meanwhile.
func (r *Runs) Open() iter.Seq[string] {
	return func(yield func(string) bool) {
		if r.open == nil {
			return
		}
		ids := slices.AppendSeq(make([]compactmap.ID, 0, r.open.Len()), r.open.All())
		slices.SortFunc(ids,
			func(a, b compactmap.ID) int { return cmp.Compare(*r.open.At(a), *r.open.At(b)) })
		for _, id := range ids {
			if !yield(r.subject(r.open.Text(id))) {
				return
			}
		}
	}
}

// Owing are the subjects of the runs that have continued as new and whose follower has no record
// yet, in no order.
func (r *Runs) Owing() iter.Seq[string] { return maps.Values(r.owing) }

// OpenLen is how many runs are open.
func (r *Runs) OpenLen() int {
	if r.open == nil {
		return 0
	}
	return r.open.Len()
}

// Len is how many subjects are remembered.
func (r *Runs) Len() int { return r.OpenLen() + len(r.owing) }
