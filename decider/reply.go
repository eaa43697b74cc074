package decider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider/internal/history"
	"github.com/droverhq/drover/internal/safecall"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	// sendRetry is the time between two tries to send a reply while the connection is down.
	sendRetry = 20 * time.Millisecond
	// sendFor bounds those tries for a task without a deadline.
	sendFor = 10 * time.Second
)

// outcome sees to it that a task gets at most one answer: that of its Decide or that of its
// context, whichever comes first.
type outcome struct {
	s     *session
	a     *ask
	t     Task // by value: one allocation for both
	began time.Time
	until time.Time // zero is no limit
	done  atomic.Bool
	cut   sync.WaitGroup // until the end of the context has been dealt with, if it came first
}

// reply sends decisions. Only the goroutine of Decide may call it, after Decide has returned.
func (o *outcome) reply(work context.Context, decisions []schemas.Decision) {
	if !o.done.CompareAndSwap(false, true) {
		return
	}
	body, err := o.body(decisions)
	if err != nil {
		o.refuse(work, OutcomeFailed, schemas.CauseDeciderError, err)
		return
	}
	if most := o.s.conn.MaxPayload(); most > 0 && int64(len(body)) > most {
		o.refuse(work, OutcomeFailed, schemas.CauseDecisionTooLarge, fmt.Errorf(
			"the reply has %d bytes and the server takes %d: split it over several decisions, "+
				"or keep large data elsewhere and pass its name", len(body), most))
		return
	}
	o.keep(body, decisions)
	if err := o.s.send(work, o.a.msg, body, o.until); err != nil {
		o.log(err).Warn("a decision could not be sent, the broker will ask again")
		o.observe(OutcomeUnsent, len(decisions), err)
		return
	}
	o.observe(OutcomeDecided, len(decisions), nil)
}

// body encodes decisions.
func (o *outcome) body(decisions []schemas.Decision) ([]byte, error) {
	r := &schemas.DecisionReply{
		Token: o.t.task.Token, Decisions: decisions, Context: o.t.context,
		Identity: o.s.opts.Identity, AllOrNothing: o.t.allOrNothing, Again: o.t.again,
	}
	if r.Decisions == nil {
		r.Decisions = []schemas.Decision{} // null would be no list to a broker in another language
	}
	if sticky := o.s.listener.Sticky; sticky != "" && !o.s.draining.Load() {
		r.Alive = true
		r.Sticky, r.Lists = sticky, o.s.nearby.Lists(o.s.opts.Namespace)
	}
	body, err := encode(o.a, r)
	if err != nil {
		return nil, fmt.Errorf("the decisions cannot be encoded: %w",
			cmp.Or(o.culprit(decisions), err))
	}
	return body, nil
}

// culprit says which of the decisions cannot be encoded, and which field of it, where that is
// known; nil if each can by itself.
func (o *outcome) culprit(decisions []schemas.Decision) error {
	for i, d := range decisions {
		_, err := encode(o.a, &schemas.DecisionReply{Decisions: []schemas.Decision{d}})
		if err == nil {
			continue
		}
		if a, ok := d.Attributes.(*schemas.ScheduleActivity); ok && a != nil {
			if invalid := a.ValidateLimits(); invalid != nil {
				err = fmt.Errorf("ScheduleActivity %q: %s", a.ActivityID, invalid.Message)
			}
		}
		return fmt.Errorf("decision %d: %w", i+1, err)
	}
	return nil
}

// keep remembers a reply. It is called before that is sent: the next task of the run may be here
// before the sending is over.
func (o *outcome) keep(body []byte, decisions []schemas.Decision) {
	closes := slices.ContainsFunc(decisions, schemas.Decision.Closes)
	o.s.cache.Keep(&o.t.task, &o.t.known, history.Digest(body), closes)
}

// fail tells the broker that there will be no decision, and why. Once the broker has stopped
// waiting there is nobody to tell.
func (o *outcome) fail(work context.Context, err error) {
	if !o.done.CompareAndSwap(false, true) {
		return
	}
	switch as, cause := kindOf(err); as {
	case OutcomeLate:
		o.log(err).Warn("no decision in time, the broker will ask again")
		o.observe(OutcomeLate, 0, err)
	case OutcomeTimedOut:
		o.refuse(work, as, cause, fmt.Errorf("%w (%v)", err, o.s.opts.Timeout))
	default:
		o.refuse(work, as, cause, err)
	}
}

// kindOf says what an error is for whoever observes the worker, and for the broker.
func kindOf(err error) (Outcome, schemas.Cause) {
	var panicked *panicError
	switch {
	case errors.Is(err, ErrDeadline):
		return OutcomeLate, schemas.CauseDeciderError
	case errors.As(err, &panicked):
		return OutcomePanicked, schemas.CauseDeciderPanic
	case errors.Is(err, ErrTimeout):
		return OutcomeTimedOut, schemas.CauseDeciderError
	case errors.Is(err, ErrStopped):
		return OutcomeStopped, schemas.CauseDeciderError
	case errors.Is(err, ErrNonDeterministic):
		return OutcomeFailed, schemas.CauseNonDeterministic
	case errors.Is(err, &schemas.Error{Code: schemas.CodeTooLarge}):
		return OutcomeFailed, schemas.CauseDecisionTooLarge
	}
	return OutcomeFailed, schemas.CauseDeciderError
}

func (o *outcome) refuse(work context.Context, as Outcome, cause schemas.Cause, err error) {
	o.log(err).Warn("a decider did not decide")
	if sent := o.s.sendError(work, o.a, o.t.task.Token, cause, err, o.until); sent != nil {
		o.log(sent).
			Warn("the failure of a decider could not be reported, the broker will time it out")
		as, err = OutcomeUnsent, errors.Join(err, sent)
	}
	o.observe(as, 0, err)
}

func (o *outcome) log(err error) *logrus.Entry {
	dt := &o.t.task
	log := o.s.log.WithFields(logrus.Fields{
		"run": dt.Run, "workflow": dt.WorkflowID, "type": dt.Type, "task": dt.StartedID,
		"attempt": dt.Attempt, "err": clip(fmt.Sprint(err), maxReason),
	})
	if p, ok := errors.AsType[*panicError](err); ok {
		log = log.WithField("stack", string(p.stack))
	}
	return log
}

func (o *outcome) observe(as Outcome, decisions int, err error) {
	dt := &o.t.task
	safecall.Tell(o.s.log, o.s.opts.Observer, Observation{
		Type: dt.Type, WorkflowID: dt.WorkflowID, Run: dt.Run, StartedID: dt.StartedID,
		Attempt: dt.Attempt, Sticky: o.a.sticky, Continues: o.t.Continues(),
		Pages: o.t.known.Reads(), Waited: o.began.Sub(o.a.arrived), Took: time.Since(o.began),
		Decisions: decisions, Outcome: as, Err: err,
	})
}

// decline answers an ask that will not be decided.
func (s *session) decline(work context.Context, a *ask, why error) {
	o, err := s.begin(a)
	if err != nil {
		s.invalid(work, a, err)
		return
	}
	o.fail(work, why)
}

// invalid handles a body that is no decision task. If its token can be read the broker is told, so
// that the run shows what is wrong; else there is nothing to answer to, and it is logged only.
func (s *session) invalid(work context.Context, a *ask, err error) {
	log := s.log.WithFields(logrus.Fields{"type": a.typ, "err": err, "bytes": len(a.msg.Data)})
	log.Error("a decision task cannot be used")
	if token := tokenOf(a.msg.Data); token != "" && a.msg.Reply != "" {
		reported := fmt.Errorf("the decider worker cannot use the decision task: %w", err)
		if sent := s.sendError(work, a, token, schemas.CauseDeciderError, reported, time.Time{}); sent != nil {
			log.WithField("err", sent).Warn("an unusable decision task could not be answered")
		}
	}
	safecall.Tell(s.log, s.opts.Observer, Observation{
		Type: a.typ, Sticky: a.sticky, Waited: time.Since(a.arrived), Outcome: OutcomeInvalid,
		Err: err,
	})
}

// tokenOf looks for the token in a body that is no proper task.
func tokenOf(body []byte) string {
	var head struct {
		Token string `json:"token"`
	}
	if schemas.Unmarshal(body, &head) != nil && schemas.IsJSON(body) {
		// A version that we do not know, or a token beside what cannot be read. Best effort: what
		// is no JSON has none.
		_ = json.Unmarshal(body, &head)
	}
	return head.Token
}

func (s *session) sendError(
	work context.Context, a *ask, token string, cause schemas.Cause, err error, until time.Time,
) error {
	text := fmt.Sprint(err) // survives an Error method that panics
	e := &schemas.DecisionError{Cause: cause, Reason: clip(text, maxReason)}
	if p, ok := errors.AsType[*panicError](err); ok {
		e.Details = clip(string(p.stack), maxDetails)
	} else if len(text) > maxReason {
		e.Details = clip(text, maxDetails)
	}
	body, err := encode(a, &schemas.DecisionReply{
		Token: token, Decisions: []schemas.Decision{}, Identity: s.opts.Identity, Error: e,
	})
	if err != nil {
		return err
	}
	return s.send(work, a.msg, body, until)
}

// encode answers in the encoding that the task came in. Attributes may be of the author's own
// making, so a panic in their methods is an error of the reply.
func encode(a *ask, r *schemas.DecisionReply) (body []byte, err error) {
	defer caught(&err)
	if schemas.IsJSON(a.msg.Data) {
		r.V = schemas.Version
		return schemas.MarshalJSON(r)
	}
	return schemas.Marshal(r)
}

// send responds. While the connection is down it tries again for as long as the broker waits: a
// decision that is lost costs a run the broker's whole timeout.
func (s *session) send(work context.Context, to natsconn.Msg, body []byte, until time.Time) error {
	if until.IsZero() {
		until = time.Now().Add(sendFor)
	}
	for {
		err := to.Respond(nil, body)
		if !errors.Is(err, natsconn.ErrDisconnected) || !time.Now().Before(until) ||
			sleep.For(work, sendRetry) != nil {
			return err
		}
	}
}
