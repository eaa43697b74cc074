package alwayson

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	// Lines of a page, by default and at most.
	pageSize = 100
	pageMost = 1000
	// writes is how often a change is tried that others overtake.
	writes = 10
)

// serve answers the verbs until stop is called.
func (m *Monitor) serve(ctx context.Context) (stop func(), err error) {
	about := func(
		do func(context.Context, *ops.AlwaysRequest) (*ops.AlwaysResponse, error),
	) func(context.Context, natsconn.Msg) any {
		return service.Answer(
			func(ctx context.Context, q *ops.AlwaysRequest) (*ops.AlwaysResponse, error) {
				if err := schemas.ValidateID("id", q.ID); err != nil {
					return nil, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("id").
						WithHint("see which there are with: drover always-on list")
				}
				return do(ctx, q)
			},
			func(_ *ops.AlwaysRequest, e *schemas.Error) *ops.AlwaysResponse { return refusal(e) })
	}
	return service.Serve(ctx,
		service.Options{Conn: m.o.Conn, Namespace: m.o.Namespace, Logger: m.o.Logger},
		[]service.Verb{
			{
				Name:  "alwaysAdd",
				About: "add an always-on workflow, or change one: AlwaysAddRequest → AlwaysResponse",
				Serve: service.Answer(m.add, func(
					_ *ops.AlwaysAddRequest, e *schemas.Error,
				) *ops.AlwaysResponse {
					return refusal(e)
				}),
			},
			{
				Name:  "alwaysList",
				About: "list always-on workflows: AlwaysListRequest → AlwaysListResponse",
				Serve: service.Answer(m.list,
					func(_ *ops.AlwaysListRequest, e *schemas.Error) *ops.AlwaysListResponse {
						return &ops.AlwaysListResponse{
							V:        schemas.Version,
							AlwaysOn: []ops.AlwaysOnRecord{},
							Error:    e,
						}
					}),
			},
			{
				Name:  "alwaysShow",
				About: "how an always-on workflow stands: AlwaysRequest → AlwaysResponse",
				Serve: about(m.show),
			},
			{
				Name:  "alwaysStop",
				About: "keep an always-on workflow down: AlwaysRequest → AlwaysResponse",
				Serve: about(m.stop),
			},
			{
				Name:  "alwaysStart",
				About: "undo a stop, or a pause after failures: AlwaysRequest → AlwaysResponse",
				Serve: about(m.restart),
			},
			{
				Name:  "alwaysRemove",
				About: "remove an always-on workflow: AlwaysRequest → AlwaysResponse",
				Serve: about(m.remove),
			},
		})
}

func refusal(e *schemas.Error) *ops.AlwaysResponse {
	return &ops.AlwaysResponse{V: schemas.Version, Error: e}
}

func answer(r *record, changed bool) *ops.AlwaysResponse {
	return &ops.AlwaysResponse{
		V:       schemas.Version,
		Record:  (*ops.AlwaysOnRecord)(r),
		Changed: changed,
	}
}

func (m *Monitor) add(ctx context.Context, q *ops.AlwaysAddRequest) (*ops.AlwaysResponse, error) {
	a, err := judged(q.AlwaysOn)
	if err != nil {
		return nil, err
	}
	if err := m.startable(ctx, &a.Start); err != nil {
		return nil, err
	}
	now, err := m.now(ctx)
	if err != nil {
		return nil, err
	}
	r, changed, err := m.change(ctx, a.Start.WorkflowID, func(r *record) (*record, bool, error) {
		if r == nil {
			return &record{
				V: schemas.Version, AlwaysOn: a, Incarnation: ulid.Make().String(),
				CreatedAt: schemas.At(now), Identity: q.Identity,
			}, true, nil
		}
		same, err := equal(&r.AlwaysOn, &a)
		if err != nil || same {
			return r, false, err
		}
		r.becomes(a)
		return r, true, nil
	})
	if err != nil {
		return nil, err
	}
	if changed {
		m.note(ctx, ops.OperationAlwaysAdded, r, q.Identity, "")
	}
	return answer(r, changed), nil
}

func equal(a, b *ops.AlwaysOn) (bool, error) {
	one, err := schemas.MarshalJSON(a)
	if err != nil {
		return false, err
	}
	two, err := schemas.MarshalJSON(b)
	return bytes.Equal(one, two), err
}

// change reads a record, has it changed and writes it, again if others come in between. There may
// be none: then do gets nil.
func (m *Monitor) change(
	ctx context.Context, id string, do func(r *record) (after *record, changed bool, err error),
) (*record, bool, error) {
	for tries := 1; ; tries++ {
		r, rev, err := m.load(ctx, id)
		switch {
		case errors.Is(err, natsconn.ErrNotFound):
			r, rev = nil, 0
		case errors.Is(err, errDamaged):
			return nil, false, schemas.Errorf(schemas.CodeConflict, "%v", err).InField("id").
				WithHint("remove it with: drover always-on remove, and add it anew")
		case err != nil:
			return nil, false, err
		}
		r, changed, err := do(r)
		if err != nil || !changed {
			return r, false, err
		}
		_, err = m.put(ctx, r, rev)
		switch {
		case errors.Is(err, errOvertaken) && tries < writes:
			continue
		case errors.Is(err, natsconn.ErrTooLarge):
			return nil, false, schemas.Errorf(schemas.CodeTooLarge, "the always-on workflow is "+
				"too large to be stored: %v", err).InField("alwaysOn.start.input").
				WithHint("put the input where the workflow finds it")
		case err != nil:
			return nil, false, err
		}
		m.ensure(id, true)
		return r, true, nil
	}
}

// known is a change of what there must be.
func (m *Monitor) known(
	ctx context.Context, id string, do func(r *record) bool,
) (*record, bool, error) {
	return m.change(ctx, id, func(r *record) (*record, bool, error) {
		if r == nil {
			return nil, false, missing(id)
		}
		return r, do(r), nil
	})
}

func missing(id string) error {
	return schemas.Errorf(schemas.CodeNotFound, "there is no always-on workflow %q", id).
		InField("id").WithHint("see which there are with: drover always-on list")
}

func (m *Monitor) show(ctx context.Context, q *ops.AlwaysRequest) (*ops.AlwaysResponse, error) {
	if err := whole(q, "alwaysShow"); err != nil {
		return nil, err
	}
	r, _, err := m.known(ctx, q.ID, func(*record) bool { return false })
	if err != nil {
		return nil, err
	}
	return answer(r, false), nil
}

func (m *Monitor) stop(ctx context.Context, q *ops.AlwaysRequest) (*ops.AlwaysResponse, error) {
	if err := once(q); err != nil {
		return nil, err
	}
	now, err := m.now(ctx)
	if err != nil {
		return nil, err
	}
	r, changed, err := m.known(ctx, q.ID, func(r *record) bool { return r.stop(q, now) })
	if err != nil {
		return nil, err
	}
	if changed {
		m.note(ctx, ops.OperationAlwaysStopped, r, q.Identity, q.Reason)
	}
	return answer(r, changed), nil
}

// once refuses a request that says two things of the open run.
func once(q *ops.AlwaysRequest) error {
	if q.Terminate && q.KeepRun {
		return schemas.Errorf(schemas.CodeInvalid,
			"terminate and keepRun are given: the run cannot be ended and left alone").
			InField("keepRun").WithHint("say one of them")
	}
	return nil
}

// whole refuses a request that says something of the open run where that is left alone.
func whole(q *ops.AlwaysRequest, verb string) error {
	field := "terminate"
	switch {
	case q.KeepRun:
		field = "keepRun"
	case !q.Terminate:
		return nil
	}
	return schemas.Errorf(schemas.CodeInvalid,
		"%s takes no %s: it is for alwaysStop and alwaysRemove", verb, field).
		InField(field).WithHint("leave it out")
}

func (m *Monitor) restart(ctx context.Context, q *ops.AlwaysRequest) (*ops.AlwaysResponse, error) {
	if err := whole(q, "alwaysStart"); err != nil {
		return nil, err
	}
	r, changed, err := m.known(ctx, q.ID, (*record).start)
	if err != nil {
		return nil, err
	}
	if changed {
		m.note(ctx, ops.OperationAlwaysStarted, r, q.Identity, q.Reason)
	}
	return answer(r, changed), nil
}

// remove stops it first, so that nothing is begun while its run is ended. One that cannot be read
// is only removed.
func (m *Monitor) remove(ctx context.Context, q *ops.AlwaysRequest) (*ops.AlwaysResponse, error) {
	if err := once(q); err != nil {
		return nil, err
	}
	now, err := m.now(ctx)
	if err != nil {
		return nil, err
	}
	r, rev, err := m.load(ctx, q.ID)
	for tries := 1; ; tries++ {
		switch {
		case errors.Is(err, natsconn.ErrNotFound):
			return nil, missing(q.ID)
		case errors.Is(err, errDamaged):
			r = &record{AlwaysOn: ops.AlwaysOn{Start: schemas.StartRequest{WorkflowID: q.ID}}}
		case err != nil:
			return nil, err
		default:
			if r.stop(q, now) {
				rev, err = m.put(ctx, r, rev)
			}
			if err == nil && r.Open && !q.KeepRun {
				err = m.endRun(ctx, r)
			}
		}
		if err == nil || errors.Is(err, errDamaged) {
			err = m.drop(ctx, r, rev)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, errOvertaken) || tries == writes {
			return nil, err
		}
		r, rev, err = m.load(ctx, q.ID)
	}
	m.ensure(q.ID, true)
	m.note(ctx, ops.OperationAlwaysRemoved, r, q.Identity, q.Reason)
	return answer(r, true), nil
}

func (m *Monitor) list(
	ctx context.Context, q *ops.AlwaysListRequest,
) (*ops.AlwaysListResponse, error) {
	if q.Limit < 0 {
		return nil, schemas.Errorf(schemas.CodeInvalid, "limit is %d; want 1 to %d, or 0 for %d",
			q.Limit, pageMost, pageSize).InField("limit").WithHint("leave it out for %d", pageSize)
	}
	ids, err := m.ids(ctx)
	if err != nil {
		return nil, err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool {
		return !strings.HasPrefix(id, q.Prefix) || q.Cursor != "" && id <= q.Cursor
	})
	a := &ops.AlwaysListResponse{V: schemas.Version, AlwaysOn: []ops.AlwaysOnRecord{}}
	room := m.room()
	for i, id := range ids {
		r, _, err := m.load(ctx, id)
		switch {
		case errors.Is(err, natsconn.ErrNotFound):
			continue
		case errors.Is(err, errDamaged):
			r = &record{
				AlwaysOn: ops.AlwaysOn{Start: schemas.StartRequest{WorkflowID: id}},
				Refusal:  err.Error(),
			}
		case err != nil:
			return nil, err
		}
		body, err := schemas.MarshalJSON((*ops.AlwaysOnRecord)(r))
		if err != nil {
			return nil, err
		}
		if room -= len(body) + 1; room < 0 && len(a.AlwaysOn) > 0 ||
			len(a.AlwaysOn) == min(cmp.Or(q.Limit, pageSize), pageMost) {
			a.Cursor = ids[i-1]
			break
		}
		a.AlwaysOn = append(a.AlwaysOn, ops.AlwaysOnRecord(*r))
	}
	return a, nil
}

// room is how many bytes of records fit an answer.
func (m *Monitor) room() int {
	most := m.o.Conn.MaxPayload()
	if most <= 0 {
		most = 1 << 20
	}
	return int(most) - 4<<10
}
