package partition

import (
	"context"
	"iter"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// host is the partition as its parts see it: each declares the interface of what it needs. They
// call it on the loop, LoadRun and SingleReplica from elsewhere too.
type host struct{ p *Partition }

func (h host) Now() schemas.Timestamp                   { return h.p.now() }
func (h host) CanWrite() bool                           { return h.p.canWrite() }
func (h host) Leaving() bool                            { return h.p.leaving != nil }
func (h host) Fence() uint64                            { return h.p.handover.Fence }
func (h host) Fail(format string, args ...any)          { h.p.fail(format, args...) }
func (h host) Get(wid string) *actor.Run                { return h.p.cache.Get(wid) }
func (h host) InMemory(wid string) *actor.Run           { return h.p.cache.InMemory(wid) }
func (h host) WhenKnown(r *actor.Run, f, broken func()) { h.p.cache.WhenKnown(r, f, broken) }
func (h host) WhenKept(r *actor.Run, f, aside func())   { h.p.cache.WhenKept(r, f, aside) }
func (h host) AfterPending(r *actor.Run, f func())      { h.p.afterPending(r, f) }
func (h host) Loaded(r *actor.Run)                      { h.p.loadedNow(r) }
func (h host) Step(r *actor.Run, e *actor.Message)      { h.p.step(r, e) }
func (h host) Drop(r *actor.Run, e *actor.Message)      { h.p.dropRepeat(r, e) }
func (h host) Deliver(r *actor.Run, e *actor.Message)   { h.p.deliver(r, e) }
func (h host) Tell(wid, kind string, v any)             { h.p.exchange.Tell(wid, kind, v) }
func (h host) Sealed() bool                             { return h.p.sealed() }
func (h host) Outside() *natsconn.Outbox                { return h.p.outside }
func (h host) When(r *actor.Run, f func())              { h.p.cache.When(r, f) }
func (h host) Mark(r *actor.Run)                        { h.p.mark(r) }
func (h host) Retire(r *actor.Run)                      { h.p.cache.Retire(r) }

func (h host) BacklogApart() schemas.Duration           { return h.p.decisions.Deciders.Backlog.Apart() }
func (h host) NothingKnown(wid string) bool             { return h.p.cache.NothingKnown(wid) }
func (h host) Valid() bool                              { return h.p.lease.Valid() }
func (h host) Replies() string                          { return h.p.inputs.replies }
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
	return h.p.cache.LoadRun(ctx, wid, run)
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
func (h host) Runs() iter.Seq[*actor.Run]                   { return h.p.cache.All() }
func (h host) Drain(r *actor.Run)                           { h.p.drain(r) }
func (h host) Unread(r *actor.Run, err error, again func()) { h.p.cache.Unread(r, err, again) }
func (h host) IsIntact(r *actor.Run) bool                   { return h.p.cache.IsIntact(r) }
func (h host) JudgeReply(r *actor.Run, reply *schemas.DecisionReply, e *actor.Message, size int) {
	h.p.large.JudgeReply(r, reply, e, size)
}
func (h host) Bury(e *actor.Message, reason, details string) { h.p.bury(e, reason, details) }

func (h host) Perform(r *actor.Run, e actor.Effect, t *watermark.Completion) {
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

func (h host) HoldEffects(sequence uint64) *watermark.Completion {
	return h.p.intake.Effects.Enter(schemas.Position{Sequence: sequence})
}
func (h host) Committed(r *actor.Run, c *actor.Commit) { h.p.committed(r, c) }

func (h host) Ready(r *actor.Run, l *runs.Run) { h.p.ready(r, l) }
func (h host) SetAside(r *actor.Run)           { h.p.setAside(r) }
func (h host) GoOn(r *actor.Run)               { h.p.goOn(r) }
func (h host) TurnAwayAll(r *actor.Run)        { h.p.turnAwayAll(r) }
func (h host) EndRecall(r *actor.Run)          { h.p.decisions.EndRecall(r) }

func (h host) WorkerNumber(name string) uint64 {
	return h.p.decisions.Deciders.Workers.Number(name)
}
