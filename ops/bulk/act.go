package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	// atOnce is how many runs are acted on at a time.
	atOnce = 16
	// askFor bounds one try of an act; within it the question is repeated each askEvery, since an
	// owner may have gone with it.
	askFor   = 10 * time.Second
	askEvery = 2 * time.Second
	// pause is between two tries of an act that nobody has answered.
	pause = time.Second
	// insists is how long an attempt tries one act. Then it is told as failed, and repeated.
	insists = time.Minute
)

// progress is what an attempt says of itself with its heartbeats: what became of the first Acted
// runs.
type progress struct {
	Acted int `json:"acted"`
	outcome
}

// act is the activity drover.bulk.act. Another attempt goes on where the one before last said it
// was, and acts again, harmlessly, on those after.
func (b *Bulk) act(ctx context.Context, in acts) (*outcome, error) {
	job, err := b.jobOf(ctx)
	if err != nil {
		return nil, err
	}
	page, err := b.page(ctx, job, in.From/perPage)
	if err != nil {
		return nil, err
	}
	at := in.From % perPage
	if in.Count < 1 || in.Rate < 1 || at+in.Count > len(page) {
		return nil, activity.Final(fmt.Errorf("the job has no runs %d to %d",
			in.From, in.From+in.Count))
	}
	p, _, err := activity.Resume[progress](ctx)
	if err != nil {
		return nil, activity.Final(err)
	}
	var mu sync.Mutex // guards p
	stop := beat(ctx, func() any {
		mu.Lock()
		defer mu.Unlock()
		return p
	})
	err = b.actAll(ctx, job, in, page[at:at+in.Count], p.Acted, func(became []outcome) {
		mu.Lock()
		defer mu.Unlock()
		for _, o := range became {
			p.add(o)
		}
		p.Acted += len(became)
	})
	if stop(); err != nil {
		if errors.Is(context.Cause(ctx), activity.ErrCanceled) {
			return nil, activity.Canceled(p)
		}
		return nil, err
	}
	return &p.outcome, b.o.Before("answer " + strconv.Itoa(in.From))
}

// actAll acts on all runs but the first few, at the rate that is wanted, and tells what became of
// them.
func (b *Bulk) actAll(
	ctx context.Context, job *job, in acts, all []target, acted int, tell func([]outcome),
) error {
	began, first := time.Now(), acted
	width := max(1, min(atOnce, in.Rate/10))
	for acted < len(all) {
		some := apart(all[acted:min(acted+width, len(all))])
		became, err := b.actOn(ctx, job, in.From+acted, some)
		if err != nil {
			return err
		}
		tell(became)
		acted += len(some)
		due := began.Add(time.Duration(acted-first) * time.Second / time.Duration(in.Rate))
		if err := sleep.For(ctx, time.Until(due)); err != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// apart are the first runs up to the second one of a workflow: those are acted on in their order.
func apart(some []target) []target {
	seen := make(map[string]bool, len(some))
	for i, t := range some {
		if seen[t.ID] {
			return some[:i]
		}
		seen[t.ID] = true
	}
	return some
}

// beat says each second that an activity is at work, and how far it has come, until stop is called.
// That says it once more.
func beat(ctx context.Context, say func() any) (stop func()) {
	beating, end := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for sleep.For(beating, time.Second) == nil {
			// what is wrong ends ctx
			_ = activity.Heartbeat(ctx, say())
		}
	})
	return func() {
		end()
		done.Wait()
		_ = activity.Heartbeat(ctx, say())
	}
}

// actOn acts on some runs at the same time. n is the number of the first of them in the job.
func (b *Bulk) actOn(ctx context.Context, job *job, n int, some []target) ([]outcome, error) {
	all, failed := make([]outcome, len(some)), make([]error, len(some))
	var acting sync.WaitGroup
	for i, t := range some {
		acting.Go(func() { all[i], failed[i] = b.insist(ctx, job, n+i, t) })
	}
	acting.Wait()
	return all, errors.Join(failed...)
}

// insist acts on a run until there is an answer.
func (b *Bulk) insist(ctx context.Context, job *job, n int, t target) (outcome, error) {
	for began := time.Now(); ; {
		err := b.o.Before("act " + strconv.Itoa(n))
		var did bool
		if err == nil {
			did, err = b.one(ctx, job, n, t)
		}
		if err == nil {
			err = b.o.Before("hear " + strconv.Itoa(n))
		}
		o, answered := judge(job.Request.Action, t, did, err)
		switch {
		case answered:
			return o, nil
		case time.Since(began) > insists:
			return o, fmt.Errorf("%s of %s run %s: %w", job.Request.Action, t.ID, t.Run, err)
		case sleep.For(ctx, pause) != nil:
			return o, context.Cause(ctx)
		}
	}
}

// judge tells what became of a run, and whether there was an answer at all. did: something was
// done, if there is no error.
func judge(action ops.BulkAction, t target, did bool, err error) (o outcome, answered bool) {
	e, ok := errors.AsType[*schemas.Error](err)
	switch {
	case err == nil && did:
		return outcome{Done: 1}, true
	case err == nil:
		return outcome{Nothing: 1}, true
	case !ok, e.Code == schemas.CodeUnavailable, e.Code == schemas.CodeTimeout:
		return outcome{}, false
	case e.Code == schemas.CodeNotFound, e.Code == schemas.CodeClosed:
		return outcome{Nothing: 1}, true
	case action == ops.BulkReplay && e.Code == schemas.CodeConflict && e.Field == "run":
		return outcome{Nothing: 1}, true // it is not the latest run of its id any more
	}
	return refused(t, e), true
}

// one acts on a run once. It tells whether something was to be done.
func (b *Bulk) one(ctx context.Context, job *job, n int, t target) (did bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	q := &job.Request
	id := "bulk-" + job.id + "-" + strconv.Itoa(n)
	switch q.Action {
	case ops.BulkSignal:
		return b.signal(ctx, q, id, t)
	case ops.BulkReplay:
		a := &schemas.ReplayResponse{}
		err := b.ask(ctx, "replay", &schemas.ReplayRequest{
			V: schemas.Version, WorkflowID: t.ID, Run: t.Run, From: q.From, LatestOnly: true,
			RequestID: id, Reason: q.Reason, Identity: q.Identity,
		}, a, &a.Error)
		return a.Run != t.Run, err
	case ops.BulkDelete:
		a := &ops.DeleteResponse{}
		return true, b.ask(ctx, "delete", &ops.DeleteRequest{
			V: schemas.Version, WorkflowID: t.ID, Run: t.Run, Reason: q.Reason,
			Identity: q.Identity, Job: q.Job,
		}, a, &a.Error)
	}
	a := &schemas.AckResponse{}
	return true, b.ask(ctx, string(q.Action), &schemas.ExecutionRequest{
		V: schemas.Version, WorkflowID: t.ID, Run: t.Run, Chain: true, RequestID: id,
		Reason: q.Reason, Identity: q.Identity,
	}, a, &a.Error)
}

// signal signals the workflow of a run if the run that is open now is that one, or has continued
// it: signals name no runs.
func (b *Bulk) signal(ctx context.Context, q *ops.BulkRequest, id string, t target) (bool, error) {
	d := &schemas.DescribeResponse{}
	err := b.ask(ctx, "describe",
		&schemas.ExecutionRequest{V: schemas.Version, WorkflowID: t.ID}, d, &d.Error)
	if err != nil {
		return false, err
	}
	open := target{ID: t.ID, Run: d.Execution.Run, First: d.Started.FirstExecutionRun}
	if d.Execution.Status.Closed() || open.chain() != t.chain() {
		return false, nil
	}
	a := &schemas.SignalResponse{}
	return true, b.ask(ctx, "signal", &schemas.SignalRequest{
		V: schemas.Version, WorkflowID: t.ID, Name: q.Name, Input: q.Input, RequestID: id,
	}, a, &a.Error)
}

// ask asks the brokers, or the master. refusal points to the error of the answer.
func (b *Bulk) ask(ctx context.Context, verb string, q, a any, refusal **schemas.Error) error {
	return b.askEvery(ctx, askEvery, verb, q, a, refusal)
}

// askEvery is ask for an answer that may take longer.
func (b *Bulk) askEvery(
	ctx context.Context, every time.Duration, verb string, q, a any, refusal **schemas.Error,
) error {
	err := service.Ask(ctx, b.o.Conn, b.o.Namespace, verb, every, q, a)
	if err == nil && *refusal != nil {
		return *refusal
	}
	if errors.Is(err, natsconn.ErrPermission) {
		return schemas.Errorf(schemas.CodePermission, "the node may not ask for %s: %v", verb, err)
	}
	return err
}

// page are the runs of a page.
func (b *Bulk) page(ctx context.Context, job *job, n int) ([]target, error) {
	if n < 0 || n >= len(job.Pages) {
		return nil, activity.Final(fmt.Errorf("the job has no page %d", n))
	}
	b.mu.Lock()
	have := b.have
	b.mu.Unlock()
	if have.digest == job.Pages[n].Digest {
		return have.page, nil
	}
	body, err := b.payloads.Download(ctx, &job.Pages[n])
	if err != nil {
		return nil, fmt.Errorf("page %d of the job: %w", n, err)
	}
	var page []target
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, activity.Final(fmt.Errorf("page %d of the job: %w", n, err))
	}
	b.mu.Lock()
	b.have = pageOf{job.Pages[n].Digest, page}
	b.mu.Unlock()
	return page, nil
}
