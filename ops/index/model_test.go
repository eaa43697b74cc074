package index_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/ops/index"
	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/schemas"
)

// model is what stores should hold: all rows, by partition and by both ids.
type model struct {
	*rand.Rand
	stores []*index.Store
	rows   []map[[2]string]*query.Row
	now    schemas.Timestamp
	seq    uint64
}

func newModel(seed uint64, partitions int) *model {
	m := &model{
		Rand: rand.New(rand.NewPCG(seed, 48)),
		now:  schemas.At(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)),
	}
	for p := range partitions {
		m.stores = append(m.stores, index.New(p))
		m.rows = append(m.rows, map[[2]string]*query.Row{})
	}
	return m
}

func pick[T any](m *model, all ...T) T { return all[m.IntN(len(all))] }

// word is one of few texts, now and then none.
func (m *model) word(kind string, n int) string {
	if m.IntN(6) == 0 {
		return ""
	}
	return kind + strconv.Itoa(m.IntN(n))
}

var statuses = []schemas.Status{
	schemas.StatusOpen, schemas.StatusPaused, schemas.StatusCompleted, schemas.StatusFailed,
	schemas.StatusTimedOut, schemas.StatusContinuedAsNew,
}

// run is the id of a run: mostly a ULID, which has times in any order.
func (m *model) run() string {
	switch m.IntN(8) {
	case 0:
		return pick(m, "r", "run ", "01arz3ndektsv4rrffq69g5fav") + strconv.Itoa(m.IntN(1000))
	case 1: // not as it is written
		return pick(
			m,
			"01arz3ndektsv4rrffq69g5fav",
			"8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
			"00000000000000000000000000",
		)
	}
	var id ulid.ULID
	for i := range id {
		id[i] = byte(m.Uint32())
	}
	return id.String()
}

// fill gives a row other values than its ids.
func (m *model) fill(r *query.Row) {
	m.seq++
	r.Sequence = m.seq
	r.Type, r.Version = m.word("type", 5), m.word("v", 3)
	r.Status = pick(m, statuses...)
	r.Closed = 0
	if r.Status != schemas.StatusOpen {
		r.Closed = r.Started + schemas.Timestamp(m.Int64N(int64(5*time.Hour)))
	}
	r.Events = m.Int64N(40)
	r.Tags = nil
	for range m.IntN(3) {
		r.Tags = append(r.Tags, m.word("tag", 3))
	}
	r.Parent, r.First, r.Reason = m.word("p", 4), m.word("f", 3), m.word("because ", 50)
	r.StartMode, r.Schedule = m.word("Mode", 3), m.word("s", 4)
	r.Attributes = nil
	for _, name := range []string{"customer", "priority", "unique", "odd"} {
		v := map[string]string{
			"customer": m.word("ACME ", 20), "priority": strconv.Itoa(m.IntN(12)),
			"unique": fmt.Sprint(m.seq),
			"odd":    pick(m, "", "1", "1.0", "-3", "1e3", "x", "10", "9007199254740993", "0.5", "NaN", "ä"),
		}[name]
		if m.IntN(3) > 0 && v != "" {
			if r.Attributes == nil {
				r.Attributes = map[string]string{}
			}
			r.Attributes[name] = v
		}
	}
}

// put inserts a row, or changes one.
func (m *model) put(p int, old *query.Row) {
	r := query.Row{Partition: p}
	if old != nil {
		r = *old
	} else {
		m.now += schemas.Timestamp(m.Int64N(int64(time.Minute)))
		r.Run = m.run()
		r.WorkflowID = fmt.Sprintf("%s%d.%d", pick(m, "order-", "ä", "x/y-"), m.IntN(500), p)
		r.Started = m.now - schemas.Timestamp(m.Int64N(int64(10*time.Minute)))
		if m.IntN(50) == 0 {
			r.Started = pick(m, 0, -1, -schemas.Timestamp(time.Hour), 1<<63-1, -1<<63)
		}
	}
	m.fill(&r)
	m.stores[p].Put(&r)
	m.rows[p][[2]string{r.WorkflowID, r.Run}] = &r
}

// some is a row of a partition, nil if there is none.
func (m *model) some(p int) *query.Row {
	keys := make([][2]string, 0, len(m.rows[p]))
	for k := range m.rows[p] {
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil
	}
	slices.SortFunc(keys, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	return m.rows[p][pick(m, keys...)]
}

// step puts a row, changes one or deletes one.
func (m *model) step() {
	p := m.IntN(len(m.stores))
	switch old := m.some(p); {
	case old == nil || m.IntN(3) > 0:
		m.put(p, nil)
	case m.IntN(3) > 0:
		m.put(p, old)
	default:
		m.remove(old)
	}
}

func (m *model) remove(r *query.Row) bool {
	delete(m.rows[r.Partition], [2]string{r.WorkflowID, r.Run})
	return m.stores[r.Partition].Delete(r.WorkflowID, r.Run)
}

// all are the rows that there should be and match, in the order of the query.
func (m *model) all(q *query.Query) (rows []query.Row) {
	for _, part := range m.rows {
		for _, r := range part {
			if q.Matches(r) {
				rows = append(rows, *r)
			}
		}
	}
	slices.SortFunc(rows, func(a, b query.Row) int { return q.Compare(&a, &b) })
	return rows
}

var columns = []query.Column{
	query.ColumnAttribute, query.ColumnID, query.ColumnRun, query.ColumnType, query.ColumnVersion,
	query.ColumnStatus, query.ColumnStarted, query.ColumnClosed, query.ColumnTook, query.ColumnEvents,
	query.ColumnTag, query.ColumnParent, query.ColumnFirst, query.ColumnReason, query.ColumnStartMode,
	query.ColumnSchedule,
}

func (m *model) field(of ...query.Column) query.Field {
	f := query.Field{Column: pick(m, of...)}
	if f.Column == query.ColumnAttribute {
		f.Attribute = pick(m, "customer", "priority", "unique", "odd", "none")
	}
	return f
}

// value is one that fields may have, of a kind.
func (m *model) value(f query.Field, kind query.Kind) query.Value {
	switch v := (query.Value{Kind: kind}); kind {
	case query.Instant:
		v.Int = int64(m.now) - m.Int64N(int64(8*time.Hour))
		if m.IntN(20) == 0 {
			v.Int = pick[int64](m, 0, -1, 1<<63-1, -1<<63)
		}
		return v
	case query.Span:
		v.Int = m.Int64N(int64(6 * time.Hour))
		return v
	case query.Number:
		v, _ = query.ParseNumber(
			pick(m, strconv.Itoa(m.IntN(30)), "2.5", "-1", "1e30", "9007199254740993"),
		)
		return v
	default:
		v.Text = map[query.Column]string{
			query.ColumnID: "order-" + strconv.Itoa(m.IntN(500)), query.ColumnType: m.word("type", 5),
			query.ColumnStatus: string(pick(m, statuses...)), query.ColumnTag: m.word("tag", 4),
			query.ColumnRun: m.run(), query.ColumnReason: m.word("because ", 50),
		}[f.Column]
		if m.IntN(3) == 0 || v.Text == "" {
			v.Text = pick(
				m,
				"",
				"o",
				"01",
				"1",
				"ACME 3",
				"p2",
				"f",
				"v1",
				"s",
				"Mode1",
				"odd",
				"tag",
				"e 7",
			)
		}
		return v
	}
}

func (m *model) condition() *query.Condition {
	c := &query.Condition{Field: m.field(columns...)}
	kind := query.Text
	switch c.Field.Column {
	case query.ColumnStarted, query.ColumnClosed:
		kind = query.Instant
	case query.ColumnTook:
		kind = query.Span
	case query.ColumnEvents:
		kind = query.Number
	case query.ColumnAttribute:
		kind = pick(m, query.Text, query.Number)
	}
	ops := []query.Op{
		query.In,
		query.In,
		query.IsNull,
		query.Less,
		query.LessEqual,
		query.Greater,
		query.GreaterEqual,
	}
	switch {
	case c.Field.Column == query.ColumnTag || kind == query.Text && m.IntN(2) == 0:
		ops = []query.Op{query.In, query.IsNull, query.StartsWith, query.Contains}
	}
	c.Op = pick(m, ops...)
	switch c.Op {
	case query.In:
		c.Not = m.IntN(3) == 0
		for range 1 + m.IntN(3) {
			c.Values = append(c.Values, m.value(c.Field, kind))
		}
	case query.IsNull:
		c.Not = m.IntN(2) == 0
	default:
		c.Not = m.IntN(3) == 0 && (c.Op == query.StartsWith || c.Op == query.Contains)
		c.Values = []query.Value{m.value(c.Field, kind)}
	}
	return c
}

func (m *model) where(depth int) query.Expr {
	if depth == 0 || m.IntN(3) == 0 {
		return m.condition()
	}
	terms := []query.Expr{m.where(depth - 1), m.where(depth - 1)}
	if m.IntN(2) == 0 {
		return query.And(terms)
	}
	return query.Or(terms)
}

// query is any query.
func (m *model) query() *query.Query {
	q := &query.Query{}
	if m.IntN(8) > 0 {
		q.Where = m.where(m.IntN(4))
	}
	for range m.IntN(3) {
		f := m.field(columns...)
		if f.Column != query.ColumnTag {
			q.Order = append(q.Order, query.Order{Field: f, Descending: m.IntN(2) == 0})
		}
	}
	if m.IntN(4) > 0 {
		q.Limit = 1 + m.IntN(100)
	}
	return q
}

func (m *model) groupings() (all []query.Grouping) {
	for range 1 + m.IntN(2) {
		g := query.Grouping{
			Field: m.field(query.ColumnAttribute, query.ColumnType, query.ColumnStatus,
				query.ColumnParent, query.ColumnReason, query.ColumnStarted, query.ColumnClosed),
		}
		if g.Field.Column == query.ColumnStarted || g.Field.Column == query.ColumnClosed {
			g.By = pick(m, query.Hour, query.Day)
		}
		all = append(all, g)
	}
	return all
}
