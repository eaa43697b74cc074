package bulk

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// Begin begins a job: it writes the record, and starts the run. A repeat finds both. An error is a
// [*schemas.Error], or it is unknown what was done.
func (b *Bulk) Begin(ctx context.Context, q *ops.BulkRequest) (*ops.BulkResponse, error) {
	if e := validate(q); e != nil {
		return nil, e
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	q.V, q.Rate = schemas.Version, cmp.Or(q.Rate, ops.DefaultBulkRate)
	if err := b.register(ctx); err != nil {
		return nil, err
	}
	now, err := b.o.Conn.StreamTime(ctx, b.o.Namespace.StreamHistory(0))
	if err != nil {
		return nil, err
	}
	if _, e := understood(q, now); e != nil {
		return nil, e
	}
	rec := &ops.BulkRecord{V: schemas.Version, Request: *q, At: schemas.At(now)}
	if err := b.record(ctx, rec); err != nil {
		return nil, err
	}
	if err := b.o.Before("start " + q.Job); err != nil {
		return nil, err
	}
	input, err := schemas.MarshalJSON(q)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(input) // another request is no repeat
	a := &schemas.StartResponse{}
	err = b.ask(ctx, "start", &schemas.StartRequest{
		V: schemas.Version, WorkflowID: q.Job, Type: ops.TypeBulk, Input: input,
		RequestID:     q.Job + "-" + hex.EncodeToString(digest[:8]),
		IDReusePolicy: schemas.ReuseReject, Identity: q.Identity,
	}, a, &a.Error)
	if err != nil {
		return nil, err
	}
	if a.Started {
		b.o.Note(ctx, ops.Operation{
			Kind: ops.OperationBulkStarted, Subject: q.Job, WorkflowID: q.Job, Run: a.Run,
			Identity: q.Identity, Reason: clip(words(q), longestMessage),
		})
	}
	select {
	case b.begun <- struct{}{}:
	default:
	}
	return &ops.BulkResponse{V: schemas.Version, Job: q.Job, Run: a.Run}, nil
}

// words say what a job does.
func words(q *ops.BulkRequest) string {
	s := string(q.Action) + ": " + q.Query
	if q.Reason != "" {
		s = q.Reason + " (" + s + ")"
	}
	return s
}

func refuse(q *ops.BulkRequest, e *schemas.Error) *ops.BulkResponse {
	return &ops.BulkResponse{V: schemas.Version, Job: q.Job, Error: e}
}

// record writes the record of a new job, or finds that it is written.
func (b *Bulk) record(ctx context.Context, r *ops.BulkRecord) error {
	err := b.write(ctx, r, 0)
	if !errors.Is(err, natsconn.ErrWrongSequence) {
		return err
	}
	have, err := b.read(ctx, key(r.Request.Job))
	if err != nil {
		return err
	}
	was, err1 := schemas.MarshalJSON(&have.Request)
	is, err2 := schemas.MarshalJSON(&r.Request)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if !bytes.Equal(was, is) {
		return schemas.Errorf(schemas.CodeAlreadyExists, "there is another bulk job %s",
			r.Request.Job).InField("job").WithHint("give each job a name of its own")
	}
	return nil
}

// register registers the types of jobs where the namespace demands it.
func (b *Bulk) register(ctx context.Context) error {
	if !b.o.RequireTypes {
		return nil
	}
	for _, t := range []schemas.TypeRegisterRequest{
		{Kind: schemas.WorkflowKind, Name: ops.TypeBulk},
		{Kind: schemas.ActivityKind, Name: ops.ActivityBulkFreeze},
		{Kind: schemas.ActivityKind, Name: ops.ActivityBulkAct},
	} {
		t.V, t.Description = schemas.Version, "bulk jobs of drover"
		a := &schemas.TypeResponse{}
		err := b.ask(ctx, "typeRegister", &t, a, &a.Error)
		if err != nil && !errors.Is(err, &schemas.Error{Code: schemas.CodeAlreadyExists}) {
			return fmt.Errorf("register %s: %w", t.Name, err)
		}
	}
	return nil
}

// validate says what is wrong with a request; nil if nothing is.
func validate(q *ops.BulkRequest) *schemas.Error {
	bad := func(field, format string, args ...any) *schemas.Error {
		return schemas.Errorf(schemas.CodeInvalid, format, args...).InField(field)
	}
	id, ok := strings.CutPrefix(q.Job, prefix)
	if _, err := ulid.ParseStrict(id); !ok || err != nil {
		return bad("job", "job is %q: want bulk- and a ULID", clip(q.Job, 64))
	}
	if !slices.Contains(ops.BulkActions, q.Action) {
		return bad("action", "action is %q: want one of %v", clip(string(q.Action), 64),
			ops.BulkActions)
	}
	switch {
	case strings.TrimSpace(q.Query) == "":
		return bad("query", "query is empty: say which runs are meant").
			WithHint("status = 'open' means all that are open")
	case len(q.Query)+len(q.Filter) > ops.MaxBulkText:
		return bad("query", "query and filter have %d bytes, want at most %d",
			len(q.Query)+len(q.Filter), ops.MaxBulkText)
	case q.Rate < 0 || q.Rate > ops.MaxBulkRate:
		return bad("rate", "rate is %d: want 1 to %d runs a second, or 0 for %d", q.Rate,
			ops.MaxBulkRate, ops.DefaultBulkRate)
	case len(q.Reason) > schemas.MaxReplayReason:
		return bad("reason", "reason has %d bytes, want at most %d", len(q.Reason),
			schemas.MaxReplayReason)
	case q.Action != ops.BulkSignal && (q.Name != "" || len(q.Input) > 0):
		return bad("name", "name and input are for signals: leave them out")
	case q.Action != ops.BulkReplay && q.From != "":
		return bad("from", "from is for replays: leave it out")
	case q.Action == ops.BulkSignal && len(q.Input) > ops.MaxBulkText:
		return bad("input", "input has %d bytes, want at most %d", len(q.Input), ops.MaxBulkText)
	case len(q.Input) > 0 && !json.Valid(q.Input):
		return bad("input", "input is no JSON")
	}
	if q.Action == ops.BulkSignal {
		if err := schemas.ValidateID("name", q.Name); err != nil {
			return bad("name", "%v", err)
		}
	}
	return nil
}
