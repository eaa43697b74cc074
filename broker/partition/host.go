package partition

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// host is the partition as its parts see it: each declares the interface of what it needs. They
// call it on the loop, LoadRun and SingleReplica from elsewhere too.
type host struct{ p *Partition }

// owner is what every part is made with.
func (p *Partition) owner() env.Owner {
	return env.Owner{Env: p.b, Partition: p.n, Loop: p.loop, Log: p.log}
}

func (h host) Now() schemas.Timestamp                   { return h.p.now() }
func (h host) CanWrite() bool                           { return h.p.canWrite() }
func (h host) Leaving() bool                            { return h.p.leaving != nil }
func (h host) Fence() uint64                            { return h.p.handover.Fence }
func (h host) Fail(format string, args ...any)          { h.p.fail(format, args...) }
func (h host) Get(wid string) *actor.Run                { return h.p.get(wid) }
func (h host) InMemory(wid string) *actor.Run           { return h.p.runs[wid] }
func (h host) WhenKnown(r *actor.Run, f, broken func()) { h.p.whenKnown(r, f, broken) }
func (h host) WhenKept(r *actor.Run, f, aside func())   { h.p.whenKept(r, f, aside) }
func (h host) AfterPending(r *actor.Run, f func())      { h.p.afterPending(r, f) }
func (h host) Loaded(r *actor.Run)                      { h.p.loadedNow(r) }
func (h host) Step(r *actor.Run, e *actor.Message)      { h.p.step(r, e) }
func (h host) Drop(r *actor.Run, e *actor.Message)      { h.p.dropRepeat(r, e) }
func (h host) Deliver(r *actor.Run, e *actor.Message)   { h.p.deliver(r, e) }
func (h host) Tell(wid, kind string, v any)             { h.p.exchange.Tell(wid, kind, v) }
func (h host) Sealed() bool                             { return h.p.sealed() }
func (h host) Outside() *natsconn.Outbox                { return h.p.outside }
func (h host) When(r *actor.Run, f func())              { h.p.when(r, f) }
func (h host) Mark(r *actor.Run)                        { h.p.mark(r) }
func (h host) Retire(r *actor.Run)                      { h.p.retire(r) }

func (h host) BacklogApart() schemas.Duration           { return h.p.decisions.Deciders.Backlog.Apart() }
func (h host) NothingKnown(wid string) bool             { return h.p.nothingKnown(wid) }
func (h host) Valid() bool                              { return h.p.lease.Valid() }
func (h host) Replies() string                          { return h.p.replies }
func (h host) ScheduleProbes(in time.Duration)          { h.p.probes.Schedule(in) }
func (h host) RefusedAhead(f *actor.Offer, nobody bool) { h.p.ahead.Refused(f, nobody) }

func (h host) StoredAfter(r *actor.Run, a *execution.Activity) {
	h.p.ahead.Stored(r, a)
}

func (h host) OfferAhead(r *actor.Run, a *execution.Activity, t *watermark.Completion) bool {
	return h.p.ahead.Offer(r, a, t)
}

func (h host) SettleStart(r *actor.Run, e *actor.Message, v actor.Verdict) {
	h.p.settleStart(r, e, v)
}

func (h host) ReadResult(q *schemas.ExecutionRequest, reply func(any), otherwise func()) {
	h.p.inspector.ReadResult(q, reply, otherwise)
}

func (h host) WhenSettled(r *actor.Run, f func(*actor.Run)) {
	h.p.wait(r, repairWait, (*actor.Run).IsSettled, f)
}

func (h host) WhenSound(r *actor.Run, reply func(any), f func()) { h.p.whenSound(r, reply, f) }
func (h host) LoadRun(ctx context.Context, wid, run string) (*runs.Run, error) {
	return h.p.loadRun(ctx, wid, run)
}

func (h host) Wait(
	r *actor.Run, wait schemas.Duration, ready func(*actor.Run) bool, answer func(*actor.Run),
) {
	h.p.wait(r, wait, ready, answer)
}

func (h host) SingleReplica() bool { return h.p.singleReplica() }
func (h host) Recovering() bool    { return h.p.handover.Recovering() }

func (h host) InboxRead() uint64                            { return h.p.intake.Logs[inboxLog].At() }
func (h host) RequestIDsSince(wid string) schemas.Timestamp { return h.p.repeats.Since(wid) }

func (h host) InBacklog(wid string) bool {
	return h.p.decisions.Deciders.Backlog.Has(wid)
}
func (h host) DeadLetter(s *execution.State) string { return h.p.letters.Of(s) }

func (h host) ListRefusal(list string) error {
	return h.p.dispatch.ListRefusal(list)
}
func (h host) WantedAlarm(r *actor.Run) schemas.Timestamp { return h.p.alarms.Wanted(r) }

func (h host) KeysBusy(r *actor.Run) bool {
	return h.p.keys.Locking(r) || h.p.keys.Stating(r)
}

func (h host) Settling() bool {
	return h.p.leaving != nil && h.p.leaving.stage == settling
}
func (h host) Runs() map[string]*actor.Run                  { return h.p.runs }
func (h host) Drain(r *actor.Run)                           { h.p.drain(r) }
func (h host) Unread(r *actor.Run, err error, again func()) { h.p.unread(r, err, again) }
func (h host) IsIntact(r *actor.Run) bool                   { return h.p.isIntact(r) }
func (h host) JudgeReply(r *actor.Run, reply *schemas.DecisionReply, e *actor.Message, size int) {
	h.p.large.JudgeReply(r, reply, e, size)
}
func (h host) Bury(e *actor.Message, reason, details string) { h.p.bury(e, reason, details) }

func (h host) Perform(
	r *actor.Run,
	e actor.Effect,
	t *watermark.Completion,
) {
	h.p.perform(r, e, t)
}

func (h host) Exchange(s *execution.State, e actor.Effect, t *watermark.Completion) {
	h.p.exchange.Perform(s, e, t)
}

func (h host) SayDamaged(subj string, err error) { h.p.sayDamaged(subj, err) }

func (h host) OpenLog(
	ctx context.Context, log int, stream, filter string, witness schemas.Position,
) error {
	return h.p.openLog(ctx, log, stream, filter, witness)
}

func (h host) Owe(r *actor.Run, e *actor.Message) { h.p.owe(r, e) }

func (h host) Happen(r *actor.Run, e *actor.Message) { h.p.happen(r, e) }
