package retention

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/internal/retention"
	"github.com/droverhq/drover/schemas"
)

const (
	// softShare is which part of the room for soft runs one of them may take.
	softShare = 4
	// softCost is what a record takes in memory beside its bytes.
	softCost = 256
	// softPage is how many records one read asks for.
	softPage = 64
)

// softRun is a run that is purged from disk, or about to be, with its records as they were stored. Nobody changes one.
type softRun struct {
	entry
	line    line
	records []post.Stored
	size    int
}

// softRuns are the runs that are kept in memory. Each is in the soft part of its group, too. The caller holds mu of the janitor.
type softRuns struct {
	size int
	runs map[entry]*softRun
	ids  map[string][]*softRun // by workflow id, the oldest first
}

func newSoftRuns() *softRuns {
	return &softRuns{runs: map[entry]*softRun{}, ids: map[string][]*softRun{}}
}

func (s *softRuns) put(r *softRun) {
	s.drop(r.entry)
	s.runs[r.entry], s.size = r, s.size+r.size
	id := r.line.WorkflowID
	s.ids[id] = append(s.ids[id], r)
	slices.SortFunc(s.ids[id], func(a, b *softRun) int { return a.compare(b.entry) })
}

func (s *softRuns) drop(e entry) {
	r := s.runs[e]
	if r == nil {
		return
	}
	delete(s.runs, e)
	s.size -= r.size
	id := r.line.WorkflowID
	s.ids[id] = slices.DeleteFunc(s.ids[id], func(o *softRun) bool { return o == r })
	if len(s.ids[id]) == 0 {
		delete(s.ids, id)
	}
}

// find is a run of a workflow id, the latest if none is named; nil if there is none.
func (s *softRuns) find(wid, run string) *softRun {
	for _, r := range slices.Backward(s.ids[wid]) {
		if run == "" || r.line.Run == run {
			return r
		}
	}
	return nil
}

// oldest is the run that ended first.
func (s *softRuns) oldest() (first entry) {
	for e := range s.runs {
		if first.closed == 0 || e.compare(first) < 0 {
			first = e
		}
	}
	return first
}

// keepSoftly reads a run that is about to be purged, if it is to be kept in memory. What cannot be read whole, or takes more room than
// one run may, is not kept: soft is a favour and no promise.
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
	for j.soft.size > j.o.SoftBytes {
		j.unsoften(j.soft.oldest())
	}
	return nil
}

// readSoft reads the records of a run; nil if it is not to be kept.
func (j *Janitor) readSoft(ctx context.Context, c *candidate) (*softRun, error) {
	r := &softRun{entry: c.entry, line: c.line}
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
			m.Data = slices.Clone(m.Data) // it may be a piece of something larger
			r.records = append(r.records, m)
		}
		switch {
		case from > c.seq:
			return r, nil
		case len(page) == 0:
			j.o.Logger.WithField("workflow", c.line.WorkflowID).WithField("run", c.line.Run).Warn("a run is not kept softly: a replica does not show it whole")
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

// softly drops what the soft expressions keep no more. The caller holds mu.
func (j *Janitor) softly(now time.Time) {
	for _, e := range j.index.expireSoft(j.defaultOf, now) {
		j.soft.drop(e)
	}
}

// Soft is a page of the records of a run that is kept in memory, those behind a sequence; without a run the latest of the workflow id.
func (j *Janitor) Soft(q *schemas.SoftRequest) (*schemas.SoftResponse, error) {
	j.mu.Lock()
	r := j.soft.find(q.WorkflowID, q.Run)
	j.mu.Unlock()
	if r == nil {
		return nil, schemas.Errorf(schemas.CodeNotFound, "workflow %q has no such run that is kept softly", q.WorkflowID).InField("workflowId").About(q.WorkflowID, q.Run)
	}
	a := &schemas.SoftResponse{V: schemas.Version, WorkflowID: q.WorkflowID, Run: r.line.Run, Records: []schemas.SoftRecord{}}
	room := int(j.o.Conn.MaxPayload()) / 2
	for _, m := range r.records {
		if m.Seq <= q.After {
			continue
		}
		if room -= len(m.Data) + softCost; room < 0 && len(a.Records) > 0 {
			a.More = true
			break
		}
		a.Records = append(a.Records, schemas.SoftRecord{Sequence: m.Seq, Time: schemas.At(m.Time), Data: m.Data})
	}
	return a, nil
}

// explainSoft explains a run that is not on disk; nil if it is not in memory either.
func (j *Janitor) explainSoft(wid, run string, now time.Time) *schemas.RetentionResponse {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.soft.find(wid, run)
	if r == nil {
		return nil
	}
	a := &schemas.RetentionResponse{V: schemas.Version, WorkflowID: wid, Run: r.line.Run, Status: r.line.Status, ClosedAt: r.line.ClosedAt, Soft: true}
	key := j.index.softKey[r.entry]
	g := j.index.groups[key]
	rank, found := 0, false
	if g != nil {
		rank, found = g.softRank(r.entry)
	}
	if !found {
		return nil
	}
	p := g.governing(j.defaultOf)
	count := len(g.runs) + len(g.soft)
	v := p.Judge(retention.Run{ID: r.line.Run, Closed: r.at(), Expirable: true}, rank, count, now)
	a.Group, a.Expression, a.Source = words(key, &r.line), p.String(), j.source(g)
	a.Rank, a.Count = rank+1, count
	if a.Goes = v.Fate != retention.Softly; !v.Until.IsZero() {
		a.Until = schemas.At(v.Until)
	}
	a.Because = v.Why + " It is in the memory of the master"
	if j.o.Node != "" {
		a.Because += " on node " + j.o.Node
	}
	a.Because += " only: it goes too when the master changes or restarts, or when it needs the room for others that ended later."
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
		for _, m := range r.records {
			if err := j.markOne(f, m); err != nil {
				return err
			}
		}
	}
	return nil
}
