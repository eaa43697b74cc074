package retention

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/retention"
	"github.com/droverhq/drover/schemas"
)

const (
	// softShare is which part of the room for soft runs one of them may take.
	softShare = 4
	// softCost is what a record takes in memory beside its bytes, and softRunCost what a run takes
	// beside its records and its texts.
	softCost    = 128
	softRunCost = 768
	// softPage is how many records one read asks for.
	softPage = 64
)

// softRun is a run that is purged from disk, or about to be, with its records as they were stored.
// Nobody changes one.
type softRun struct {
	entry
	line    line
	records []softRecord
	size    int
	place   int // in softRuns.ends
}

// softRecord is what of a record cannot be told from the others. Headers are not kept: they may be
// as large as the record.
type softRecord struct {
	seq  uint64
	time time.Time
	data []byte
}

// softRuns are the runs that are kept in memory. Each is in the soft part of its group, too. The
// caller holds mu of the janitor.
type softRuns struct {
	size int
	runs map[entry]*softRun
	byID map[string]*softRun   // by run id
	ids  map[string][]*softRun // by workflow id, the oldest first
	ends queue[*softRun]       // the one that ended first is the first to make room
}

func newSoftRuns() *softRuns {
	return &softRuns{
		runs: map[entry]*softRun{}, byID: map[string]*softRun{}, ids: map[string][]*softRun{},
		ends: queue[*softRun]{
			before: func(a, b *softRun) bool { return a.compare(b.entry) < 0 },
			place:  func(r *softRun) *int { return &r.place },
		},
	}
}

func (s *softRuns) put(r *softRun) {
	s.drop(r.entry)
	s.runs[r.entry], s.byID[r.line.Run], s.size = r, r, s.size+r.size
	s.ends.put(r)
	id := r.line.WorkflowID
	at, _ := s.find(id, r.entry)
	s.ids[id] = slices.Insert(s.ids[id], at, r)
}

func (s *softRuns) drop(e entry) {
	r := s.runs[e]
	if r == nil {
		return
	}
	delete(s.runs, e)
	if s.byID[r.line.Run] == r {
		delete(s.byID, r.line.Run)
	}
	s.size -= r.size
	s.ends.drop(r)
	id := r.line.WorkflowID
	switch at, ok := s.find(id, e); {
	case len(s.ids[id]) == 1:
		delete(s.ids, id)
	case ok && at == 0: // as it is when room is made: the others need not move
		s.ids[id][0] = nil
		s.ids[id] = s.ids[id][1:]
	case ok:
		s.ids[id] = slices.Delete(s.ids[id], at, at+1)
	}
}

// find is the place of an entry among the runs of a workflow id.
func (s *softRuns) find(wid string, e entry) (int, bool) {
	return slices.BinarySearchFunc(s.ids[wid], e,
		func(r *softRun, e entry) int { return r.compare(e) })
}

// get is a run of a workflow id, the latest if none is named; nil if there is none.
func (s *softRuns) get(wid, run string) *softRun {
	if all := s.ids[wid]; run == "" && len(all) > 0 {
		return all[len(all)-1]
	}
	if r := s.byID[run]; r != nil && r.line.WorkflowID == wid {
		return r
	}
	return nil
}

// keepSoftly reads a run that is about to be purged, if it is to be kept in memory. What cannot be
// read whole, or takes more room than one run may, is not kept: soft is a favour and no promise.
func (j *Janitor) keepSoftly(ctx context.Context, c *candidate) error {
	j.mu.Lock()
	wanted := j.index.softKey[c.entry] != "" && j.soft.runs[c.entry] == nil
	j.mu.Unlock()
	if !wanted {
		return nil
	}
	r, err := j.readSoft(ctx, c)
	if err != nil {
		return fmt.Errorf("read run %s before it is purged: %w", c.line.Run, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if r == nil {
		j.unsoften(c.entry)
		return nil
	}
	j.soft.put(r)
	for r, ok := j.soft.ends.first(); ok && j.soft.size > j.o.SoftBytes; r, ok = j.soft.ends.first() {
		j.unsoften(r.entry)
	}
	return nil
}

// brief is what explanations need of a line. Tags and attributes are in the records, too.
func brief(l *line) line {
	return line{ExecutionInfo: schemas.ExecutionInfo{
		WorkflowID: l.WorkflowID, Run: l.Run, Type: l.Type, Status: l.Status,
		ClosedAt: l.ClosedAt, Parent: l.Parent,
	}, Retention: l.Retention}
}

// textsOf is how long the texts of a brief line are.
func textsOf(l *line) int {
	n := len(l.WorkflowID) + len(l.Run) + len(l.Type)
	if l.Parent != nil {
		n += len(l.Parent.WorkflowID) + len(l.Parent.Run)
	}
	if d := l.Retention; d != nil {
		n += len(d.Hash) + len(d.Disk) + len(d.Soft)
	}
	return n
}

// readSoft reads the records of a run; nil if it is not to be kept.
func (j *Janitor) readSoft(ctx context.Context, c *candidate) (*softRun, error) {
	r := &softRun{entry: c.entry, line: brief(&c.line)}
	r.size = softRunCost + textsOf(&r.line)
	stream := j.o.Namespace.StreamHistory(int(c.partition))
	for from := uint64(1); ; {
		page, _, err := j.o.Conn.BatchGet(ctx, stream, c.subject, from, softPage)
		if err != nil {
			return nil, err
		}
		for _, m := range page {
			from = m.Seq + 1
			if m.Header.Get(schemas.StatusHeader) == "" {
				continue // a stray, which whoever folds a run passes over
			}
			if r.size += len(m.Data) + softCost; r.size > j.o.SoftBytes/softShare {
				return nil, nil
			}
			// it may be a piece of something larger
			r.records = append(r.records, softRecord{m.Seq, m.Time, slices.Clone(m.Data)})
		}
		switch {
		case from > c.seq:
			return r, nil
		case len(page) == 0:
			j.o.Logger.WithField("workflow", c.line.WorkflowID).WithField("run", c.line.Run).
				Warn("a run is not kept softly: a replica does not show it whole")
			return nil, nil
		}
	}
}

// lost takes a run that has gone before it could be read.
func (j *Janitor) lost(e entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.soft.runs[e] == nil {
		j.unsoften(e)
	}
}

// unsoften keeps a run softly no more. The caller holds mu.
func (j *Janitor) unsoften(e entry) {
	j.soft.drop(e)
	j.index.harden(e)
}

// Soft is a page of the records of a run that is kept in memory, those after a sequence; without a
// run the latest of the workflow id.
func (j *Janitor) Soft(q *schemas.SoftRequest) (*schemas.SoftResponse, error) {
	j.mu.Lock()
	r := j.soft.get(q.WorkflowID, q.Run)
	j.mu.Unlock()
	if r == nil {
		return nil, schemas.Errorf(schemas.CodeNotFound, "workflow %q has no such run that is "+
			"kept softly", q.WorkflowID).InField("workflowId").About(q.WorkflowID, q.Run)
	}
	a := &schemas.SoftResponse{
		V: schemas.Version, WorkflowID: q.WorkflowID, Run: r.line.Run,
		Records: []schemas.SoftRecord{},
	}
	room := int(j.o.Conn.MaxPayload()) / 2
	later, _ := slices.BinarySearchFunc(r.records, q.After, func(m softRecord, after uint64) int {
		if m.seq <= after {
			return -1
		}
		return 1
	})
	for _, m := range r.records[later:] {
		if room -= len(m.data) + softCost; room < 0 && len(a.Records) > 0 {
			a.More = true
			break
		}
		a.Records = append(a.Records,
			schemas.SoftRecord{Sequence: m.seq, Time: schemas.At(m.time), Data: m.data})
	}
	return a, nil
}

// explainSoft explains a run that is not on disk; nil if it is not in memory either.
func (j *Janitor) explainSoft(wid, run string, now time.Time) *schemas.RetentionResponse {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.soft.get(wid, run)
	if r == nil {
		return nil
	}
	a := &schemas.RetentionResponse{
		V: schemas.Version, WorkflowID: wid, Run: r.line.Run, Status: r.line.Status,
		ClosedAt: r.line.ClosedAt, Soft: true,
	}
	key := j.index.softKey[r.entry]
	g := j.index.groups[key]
	rank, found := 0, false
	if g != nil {
		rank, found = j.index.softRank(g, r.entry)
	}
	if !found {
		return nil
	}
	p := g.governing(j.defaultOf)
	count := len(g.runs) + len(g.soft)
	v := p.Judge(retention.Run{ID: r.line.Run, Closed: r.at(), Expirable: true}, rank, count, now)
	a.Group, a.Expression, a.Source = words(key, &r.line), p.String(), j.source(g)
	a.Rank, a.Count = rank+1, count
	if a.Goes = v.Fate != retention.Softly; comes(v.Until) {
		a.Until = schemas.At(v.Until)
	}
	a.Because = v.Why + " It is in the memory of the master"
	if j.o.Node != "" {
		a.Because += " on node " + j.o.Node
	}
	a.Because += " only: it goes too when the master changes or restarts, or when it needs the " +
		"room for others that ended later."
	return a
}

// markSoft takes the runs that are kept in memory: their payloads stay as long as they do.
func (j *Janitor) markSoft(f *finder) error {
	j.mu.Lock()
	var all []*softRun
	for _, r := range j.soft.runs {
		all = append(all, r)
	}
	j.mu.Unlock()
	for _, r := range all {
		subj := j.o.Namespace.History(int(r.partition), r.line.WorkflowID, r.line.Run)
		for _, m := range r.records {
			if err := j.markOne(f, natsconn.Stored{Subject: subj, Seq: m.seq, Time: m.time, Data: m.data}); err != nil {
				return err
			}
		}
	}
	return nil
}
