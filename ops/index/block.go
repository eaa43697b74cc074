package index

import (
	"iter"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/schemas"
)

// block holds up to blockRows rows, column by column. A row never moves within it, and what is
// deleted leaves a hole.
type block struct {
	n    int    // rows, holes included
	live rowset // without the holes
	rows int    // how many of these

	runs     [][16]byte // of those that are ULIDs; the others are in text
	started  []schemas.Timestamp
	closed   []schemas.Timestamp
	events   []int64
	sequence []uint64
	// text has the columns of texts, each under its query.Column. Those of other kinds stay empty.
	text [query.ColumnSchedule + 1]texts
	// attributes has a column for each name, numbered by the store; it may be shorter than those.
	attributes []texts

	starts, closes span // of all rows that there ever were
}

// span is from where to where the times of a column reach.
type span struct {
	first, last schemas.Timestamp
	some, lacks bool // there are rows with a time; there are such without
}

func (s *span) widen(t schemas.Timestamp) {
	switch {
	case t == 0:
		s.lacks = true
	case !s.some:
		s.first, s.last, s.some = t, t, true
	default:
		s.first, s.last = min(s.first, t), max(s.last, t)
	}
}

// add appends a row and returns its number. There must be room.
func (b *block) add(r *query.Row, names []string) int {
	row := b.n
	b.n++
	b.rows++
	b.live.add(row)
	b.runs = append(b.runs, [16]byte{})
	b.started, b.closed = append(b.started, 0), append(b.closed, 0)
	b.events, b.sequence = append(b.events, 0), append(b.sequence, 0)
	if id, ok := packed(r.Run); ok {
		b.runs[row] = id
	} else {
		b.text[query.ColumnRun].set(row, r.Run)
	}
	b.text[query.ColumnID].set(row, r.WorkflowID)
	b.set(row, r, names)
	return row
}

// set writes all of a row but its ids, which stay. Attributes that have no number are left out.
func (b *block) set(row int, r *query.Row, names []string) {
	b.started[row], b.closed[row] = r.Started, r.Closed
	b.events[row], b.sequence[row] = r.Events, r.Sequence
	b.starts.widen(r.Started)
	b.closes.widen(r.Closed)
	b.text[query.ColumnType].set(row, r.Type)
	b.text[query.ColumnVersion].set(row, r.Version)
	b.text[query.ColumnStatus].set(row, string(r.Status))
	b.text[query.ColumnTag].set(row, packTags(r.Tags))
	b.text[query.ColumnParent].set(row, r.Parent)
	b.text[query.ColumnFirst].set(row, r.First)
	b.text[query.ColumnReason].set(row, r.Reason)
	b.text[query.ColumnStartMode].set(row, r.StartMode)
	b.text[query.ColumnSchedule].set(row, r.Schedule)
	for n, name := range names {
		v := r.Attributes[name]
		for v != "" && len(b.attributes) <= n {
			b.attributes = append(b.attributes, texts{})
		}
		if n < len(b.attributes) {
			b.attributes[n].set(row, v)
		}
	}
}

// remove makes the row a hole.
func (b *block) remove(row int) {
	b.live.remove(row)
	b.rows--
}

// row is what was put there, but for attributes that have no number.
func (b *block) row(row int, names []string) *query.Row {
	get := func(c query.Column) string { return strings.Clone(b.text[c].of(row)) }
	r := &query.Row{
		WorkflowID: get(query.ColumnID), Run: b.run(row),
		Type: get(query.ColumnType), Version: get(query.ColumnVersion),
		Status:  schemas.Status(get(query.ColumnStatus)),
		Started: b.started[row], Closed: b.closed[row],
		Events: b.events[row], Sequence: b.sequence[row],
		Tags:   unpackTags(b.text[query.ColumnTag].of(row)),
		Parent: get(query.ColumnParent), First: get(query.ColumnFirst),
		Reason: get(query.ColumnReason), StartMode: get(query.ColumnStartMode),
		Schedule: get(query.ColumnSchedule),
	}
	for n := range b.attributes {
		if v := b.attributes[n].of(row); v != "" {
			if r.Attributes == nil {
				r.Attributes = make(map[string]string)
			}
			r.Attributes[names[n]] = strings.Clone(v)
		}
	}
	return r
}

// id is the workflow id of a row, a view.
func (b *block) id(row int) string { return b.text[query.ColumnID].of(row) }

// run is the run id of a row.
func (b *block) run(row int) string {
	if text := b.text[query.ColumnRun].of(row); text != "" {
		return strings.Clone(text)
	}
	return ulid.ULID(b.runs[row]).String()
}

// shrink gives back the room of a block that gets no more rows.
func (b *block) shrink() {
	b.runs = slices.Clone(b.runs)
	b.started, b.closed = slices.Clone(b.started), slices.Clone(b.closed)
	b.events, b.sequence = slices.Clone(b.events), slices.Clone(b.sequence)
	for c := range b.columns() {
		c.shrink()
	}
}

// columns goes through all columns of texts.
func (b *block) columns() iter.Seq[*texts] {
	return func(yield func(*texts) bool) {
		for i := range b.text {
			if !yield(&b.text[i]) {
				return
			}
		}
		for i := range b.attributes {
			if !yield(&b.attributes[i]) {
				return
			}
		}
	}
}

// size is about how many bytes of memory the block takes.
func (b *block) size() int64 {
	size := int64(4<<10 + 48*cap(b.runs)) // 16 bytes of the run, 4 numbers of 8
	for c := range b.columns() {
		size += c.size()
	}
	return size
}
