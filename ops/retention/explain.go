package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/retention"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas"
)

// serve answers the verbs until stop is called.
func (j *Janitor) serve(ctx context.Context) (stop func(), err error) {
	verbs := []service.Verb{
		{
			Name:  "retention",
			About: "how long a closed run is kept, and why: ExecutionRequest → RetentionResponse",
			Serve: service.Answer(j.answer, refuseRetention),
		},
		{
			Name: "soft",
			About: "the records of a run that is purged from disk and kept in memory, for " +
				"brokers: SoftRequest → SoftResponse",
			Serve: service.Answer(j.answerSoft, refuseSoft),
		},
	}
	return service.Serve(ctx,
		service.Options{Conn: j.o.Conn, Namespace: j.o.Namespace, Logger: j.o.Logger}, verbs)
}

func (j *Janitor) answer(
	ctx context.Context, q *schemas.ExecutionRequest,
) (*schemas.RetentionResponse, error) {
	if err := named(q.WorkflowID); err != nil {
		return nil, err
	}
	return j.Explain(ctx, q.WorkflowID, q.Run)
}

func refuseRetention(q *schemas.ExecutionRequest, e *schemas.Error) *schemas.RetentionResponse {
	return &schemas.RetentionResponse{V: schemas.Version, WorkflowID: q.WorkflowID, Error: e}
}

func (j *Janitor) answerSoft(
	_ context.Context, q *schemas.SoftRequest,
) (*schemas.SoftResponse, error) {
	if err := named(q.WorkflowID); err != nil {
		return nil, err
	}
	return j.Soft(q)
}

func refuseSoft(q *schemas.SoftRequest, e *schemas.Error) *schemas.SoftResponse {
	return &schemas.SoftResponse{
		V: schemas.Version, WorkflowID: q.WorkflowID, Records: []schemas.SoftRecord{}, Error: e,
	}
}

// named refuses a request that is about no workflow.
func named(wid string) error {
	if err := schemas.ValidateID("workflowId", wid); err != nil {
		return schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("workflowId")
	}
	return nil
}

// Explain says in words why a run is still there, in which group and by which expression it is
// judged, and when it goes. Without a run it is the latest of the workflow id. An error is of type
// [*schemas.Error], or that of a stream.
func (j *Janitor) Explain(
	ctx context.Context, wid, run string,
) (*schemas.RetentionResponse, error) {
	p := subject.Partition(wid, j.o.Partitions)
	subj := j.o.Namespace.HistoryOfWorkflow(p, wid)
	if run != "" {
		subj = j.o.Namespace.History(p, wid, run)
	}
	m, err := j.o.Conn.LastBySubject(ctx, j.o.Namespace.StreamHistory(p), subj)
	if errors.Is(err, natsconn.ErrNotFound) {
		now, err := j.serverTime(ctx)
		if err != nil {
			return nil, err
		}
		if a := j.explainSoft(wid, run, now); a != nil {
			return a, nil
		}
		e := schemas.Errorf(schemas.CodeNotFound, "workflow %q has no such history: it was "+
			"never started, or is purged", wid).InField("workflowId").About(wid, run)
		return nil, e.WithHint("see what there is with: drover list")
	}
	if err != nil {
		return nil, err
	}
	l, err := runs.ReadLine(*m)
	if err != nil {
		return nil, err
	}
	now, err := j.serverTime(ctx)
	if err != nil {
		return nil, err
	}
	if err := j.catchUp(ctx); err != nil {
		return nil, err
	}
	a := &schemas.RetentionResponse{
		V: schemas.Version, WorkflowID: wid, Run: l.Run, Status: l.Status, ClosedAt: l.ClosedAt,
	}
	if !l.Status.Closed() {
		a.Because = "never: it is open, and open runs are always kept"
		return a, nil
	}
	return a, j.explainClosed(ctx, a,
		entry{closed: m.Time.UnixNano(), seq: m.Seq, partition: int32(p), id: idOf(l.Run)}, &l,
		&look{j: j, now: now, checkpoints: map[int]schemas.Checkpoint{}})
}

func (j *Janitor) explainClosed(
	ctx context.Context, a *schemas.RetentionResponse, e entry, l *line, k *look,
) error {
	if held := j.holder(e); held != "" {
		a.Because = fmt.Sprintf("never while run %s, which is above it, is open", held)
		return nil
	}
	judged := j.judge(a, e, l, k)
	if judged && !a.Goes {
		return nil
	}
	if !judged && !j.isDue(e) {
		return schemas.Errorf(schemas.CodeUnavailable,
			"the master has not read yet that run %s has closed", l.Run).About(l.WorkflowID, l.Run).
			WithHint(
				"ask again in a moment; after a change of the master it reads all histories first")
	}
	_, why, err := k.may(ctx, e)
	switch {
	case errors.Is(err, errGone):
		why = "it was purged just now"
	case err != nil:
		return err
	case why == "":
		why = "it goes with the next pass, after the runs that go before it; a new master only " +
			"looks for its first minutes"
	}
	if judged {
		a.Because += " It is still there: " + why
		return nil
	}
	a.Goes, a.Because = true, "it is to go, and is still there: "+why
	if d := l.Retention; d != nil && d.Disabled {
		a.Expression = "disabled"
	}
	return nil
}

// catchUp reads what has closed since the last pass, unless one is under way.
func (j *Janitor) catchUp(ctx context.Context) error {
	if !j.passing.TryLock() {
		return nil
	}
	defer j.passing.Unlock()
	return j.learn(ctx)
}

// isDue tells whether a run is to go.
func (j *Janitor) isDue(e entry) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, found := slices.BinarySearchFunc(j.due, e, byPlace)
	return found
}

// judge fills in the judgement on a run that is in a group, and tells whether it is in one.
func (j *Janitor) judge(a *schemas.RetentionResponse, e entry, l *line, k *look) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	keys := []string{memberOf(e, l, false).key}
	if l.Parent != nil {
		keys = append(keys, memberOf(e, l, true).key)
	}
	for _, key := range keys {
		g := j.index.groups[key]
		if g == nil {
			continue
		}
		rank, found := j.index.rank(g, e)
		if !found {
			continue
		}
		p := g.governing(j.defaultOf)
		v := p.Judge(retention.Run{ID: l.Run, Closed: e.at(), Expirable: true}, rank, len(g.runs),
			k.now)
		a.Group, a.Expression, a.Source = words(key, l), p.String(), j.source(g)
		a.Rank, a.Count, a.Because = rank+1, len(g.runs), v.Why
		a.Goes = v.Fate != retention.OnDisk
		if comes(v.Until) {
			a.Until = schemas.At(v.Until)
		}
		return true
	}
	return false
}

// source says who has asked for what a group is judged by. The caller holds mu.
func (j *Janitor) source(g *group) string {
	switch {
	case g.policy != nil && g.differ:
		return "the run of the group that closed last of those that say something; others say something else"
	case g.policy != nil:
		return "what runs of the group say"
	case j.flows[g.typ]:
		return "the default of the namespace for flows"
	}
	return "the default of the namespace"
}

// words names a group.
func words(key string, l *line) string {
	if key == typeKey(l.Type) {
		return fmt.Sprintf("runs of type %q", l.Type)
	}
	m := policyOf(l.Retention)
	switch {
	case l.Status == schemas.StatusContinuedAsNew:
		return "earlier runs of its chain"
	case m != nil && m.Hash != "":
		return fmt.Sprintf("runs with hash %q", m.Hash)
	}
	return fmt.Sprintf("parts of run %s", l.Parent.Run)
}

// holder is the open run above a closed one that keeps it; empty if there is none.
func (j *Janitor) holder(e entry) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	for run, all := range j.waiting {
		for _, m := range all {
			if byPlace(m.entry, e) == 0 {
				return run
			}
		}
	}
	return ""
}
