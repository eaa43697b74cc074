package recycle

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

func (k *Keeper) verbs() []service.Verb {
	return []service.Verb{
		{
			Name:  "recycleSet",
			About: "when the nodes restart their roles: RecycleRequest → RecycleResponse",
			Serve: service.Answer(k.answerSet, refuse),
		},
		{
			Name:  "recycleNow",
			About: "have the nodes restart their roles now: RecycleRequest → RecycleResponse",
			Serve: service.Answer(k.answerNow, refuse),
		},
		{
			Name:  "recycleShow",
			About: "when the nodes restart their roles, and where they stand: RecycleRequest → RecycleResponse",
			Serve: service.Answer(k.answerShow, refuse),
		},
	}
}

func refuse(_ *ops.RecycleRequest, e *schemas.Error) *ops.RecycleResponse {
	return &ops.RecycleResponse{V: schemas.Version, Error: e}
}

// most is the longest reason, in bytes.
const mostReason = 1024

// judge refuses what the verb does not know, and a namespace that is the home of no node: nothing
// would ever happen.
func (k *Keeper) judge(ctx context.Context, q *ops.RecycleRequest, verb string, sets bool) error {
	switch {
	case !sets && q.Recycle != nil:
		return schemas.Errorf(schemas.CodeInvalid, "%s takes no recycle", verb).InField("recycle").
			WithHint("set it with recycleSet")
	case sets && q.Recycle == nil:
		return schemas.Errorf(schemas.CodeInvalid, "recycle is missing").InField("recycle").
			WithHint(`such as {"at":"03:30"}, or {} for never`)
	case sets && q.Notice != 0:
		return schemas.Errorf(schemas.CodeInvalid, "notice is that of recycleNow").
			InField("notice").WithHint("write recycle.notice")
	case q.Notice < 0 || q.Notice.Std() > day:
		return schemas.Errorf(schemas.CodeInvalid, "notice is %v", q.Notice).InField("notice").
			WithHint("use up to 24h, or leave it out for none")
	case len(q.Reason) > mostReason:
		return schemas.Errorf(schemas.CodeInvalid, "reason has %d bytes", len(q.Reason)).
			InField("reason").WithHint("use at most %d", mostReason)
	case sets && (q.Recycle.Asked != 0 || q.Recycle.UpdatedAt != 0 || q.Recycle.Identity != ""):
		return schemas.Errorf(schemas.CodeInvalid,
			"asked, updatedAt and identity are set by the server").InField("recycle").
			WithHint("leave them out")
	}
	members, err := k.members(ctx)
	if err != nil {
		return err
	}
	if len(members) == 0 {
		return schemas.Errorf(schemas.CodeConflict,
			"namespace %q is the home of no server, so none would restart", k.o.Namespace).
			InField("namespace").
			WithHint(
				"name the namespace that the servers were started with: drover node list -o json tells each one's")
	}
	return nil
}

// change writes what is set, as edit makes it of what was.
func (k *Keeper) change(ctx context.Context, edit func(r *ops.Recycle)) (*ops.Recycle, error) {
	var err error
	for range attempts {
		r, rev, readErr := k.store.set(ctx)
		if readErr != nil {
			return nil, readErr
		}
		edit(r)
		r.V = schemas.Version
		if err = k.store.write(ctx, keySet, r, rev); !errors.Is(err, natsconn.ErrWrongSequence) {
			return r, err
		}
	}
	return nil, err
}

func (k *Keeper) answerSet(
	ctx context.Context, q *ops.RecycleRequest,
) (*ops.RecycleResponse, error) {
	if err := k.judge(ctx, q, "recycleSet", true); err != nil {
		return nil, err
	}
	if _, err := compile(q.Recycle); err != nil {
		return nil, err
	}
	now := k.now(ctx)
	set, err := k.change(ctx, func(r *ops.Recycle) {
		asked := r.Asked
		*r = *q.Recycle
		r.Asked, r.UpdatedAt, r.Identity = asked, schemas.At(now), q.Identity
	})
	if err != nil {
		return nil, err
	}
	reason := "never"
	if set.At != "" {
		reason = "at " + set.At
	}
	if q.Reason != "" {
		reason += ": " + q.Reason
	}
	k.store.notes.Note(ctx,
		ops.Operation{Kind: ops.OperationRecycleSet, Identity: q.Identity, Reason: reason})
	if err := k.callOff(ctx, set, now); err != nil {
		return nil, err
	}
	wake(k.woken)
	return k.show(ctx)
}

// callOff ends a daily recycle that is announced and has not begun: another time holds now.
func (k *Keeper) callOff(ctx context.Context, set *ops.Recycle, now time.Time) error {
	state, rev, err := k.store.state(ctx)
	if err != nil || state == nil || state.Phase != ops.RecycleAnnounced ||
		state.Slot == set.Asked || !now.Before(state.At.Time()) {
		return err
	}
	n := &ops.RecycleNotice{
		Phase:  ops.RecycleFinished,
		Slot:   schemas.At(now),
		At:     schemas.At(now),
		Reason: "called off: the time was changed",
	}
	if err := k.tell(ctx, n, rev); err != nil && !errors.Is(err, natsconn.ErrWrongSequence) {
		return err
	}
	return nil
}

func (k *Keeper) answerNow(
	ctx context.Context, q *ops.RecycleRequest,
) (*ops.RecycleResponse, error) {
	if err := k.judge(ctx, q, "recycleNow", false); err != nil {
		return nil, err
	}
	at := schemas.At(k.now(ctx)).Add(q.Notice)
	if _, err := k.change(ctx, func(r *ops.Recycle) { r.Asked = at }); err != nil {
		return nil, err
	}
	n := &ops.RecycleNotice{Phase: ops.RecycleAnnounced, Slot: at, At: at, Reason: q.Reason}
	for range attempts {
		_, rev, err := k.store.state(ctx)
		if err == nil {
			err = k.tell(ctx, n, rev)
		}
		if err == nil {
			wake(k.woken)
			return k.show(ctx)
		}
		if !errors.Is(err, natsconn.ErrWrongSequence) {
			return nil, err
		}
	}
	wake(k.woken) // it is announced with the next look
	return k.show(ctx)
}

func (k *Keeper) answerShow(
	ctx context.Context, q *ops.RecycleRequest,
) (*ops.RecycleResponse, error) {
	if q.Recycle != nil || q.Notice != 0 {
		return nil, schemas.Errorf(schemas.CodeInvalid,
			"recycleShow takes neither recycle nor notice").InField("recycle").
			WithHint("leave them out")
	}
	return k.show(ctx)
}

func (k *Keeper) show(ctx context.Context) (*ops.RecycleResponse, error) {
	set, _, err := k.store.set(ctx)
	if err != nil {
		return nil, err
	}
	state, _, err := k.store.state(ctx)
	if err != nil {
		return nil, err
	}
	members, err := k.members(ctx)
	if err != nil {
		return nil, err
	}
	now := k.now(ctx)
	a := &ops.RecycleResponse{
		V: schemas.Version, Recycle: set, Latest: state, Next: nextOf(set, state, now),
	}
	for _, m := range members {
		a.Nodes = append(a.Nodes,
			ops.RecycleNode{Node: m.name, Since: schemas.At(m.since), Phase: phaseOf(state, m)})
	}
	return a, nil
}

// nextOf is when the next recycle begins; 0 if none is to.
func nextOf(set *ops.Recycle, state *ops.RecycleNotice, now time.Time) schemas.Timestamp {
	if goesOn(state) && state.Phase == ops.RecycleAnnounced && now.Before(state.At.Time()) {
		return state.At
	}
	p, err := compile(set)
	if err != nil {
		return 0
	}
	return schemas.At(p.next(now))
}

// phaseOf is where a node stands in a recycle that goes on.
func phaseOf(state *ops.RecycleNotice, m member) ops.RecyclePhase {
	switch {
	case !goesOn(state):
		return ""
	case !m.since.Before(state.Slot.Time()):
		return ops.RecycleReturned
	case state.Node == m.name:
		return state.Phase
	}
	return ops.RecycleAnnounced
}
