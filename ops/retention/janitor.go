package retention

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/droverhq/drover/internal/retention"
	"github.com/droverhq/drover/internal/safecall"
	"github.com/droverhq/drover/ops/spans"
	"github.com/droverhq/drover/schemas"
)

// Report is what one pass has seen and done.
type Report struct {
	Kept    int // closed runs that stay, as their groups want it
	Blocked int // closed runs of which a run above them is open
	Purged  int // runs that were purged
	Waiting int // runs that are to go and may not yet
	Took    time.Duration
}

// Janitor looks after one namespace. One pass runs at a time; [Janitor.Explain] may be asked
// meanwhile.
type Janitor struct {
	o           Options
	flowDefault retention.Policy
	def         retention.Policy

	// mu guards what follows. It is not held over anything that waits.
	mu    sync.Mutex
	flows map[string]bool
	index *index
	// closed runs that wait for the end of a run above them, by its run id
	waiting map[string][]member
	due     []entry // closed runs that are to go, by partition and sequence
	soft    *softRuns

	unnamed *unnamed // payloads that nothing named at the last look

	follower *spans.Follower // its use needs passing, but for Queue
	many     chan struct{}   // many closed runs were told of
	asked    chan *deletion  // served by the goroutine that passes
	latest   []int64         // when the last run of each partition closed, in Unix nanoseconds
	server   string          // the NATS server that was read
	kin      map[string]kinship
	warned   map[string]bool // groups of which the log has said that their members differ
	passing  sync.Mutex

	// purging is held while something is removed, and while a look at the payloads reads the
	// histories, which must not lose anything meanwhile. It is taken after passing.
	purging sync.Mutex
}

// New checks the options. It asks nobody.
func New(o Options) (*Janitor, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	j := &Janitor{
		o: o, warned: map[string]bool{}, many: make(chan struct{}, 1), asked: make(chan *deletion),
	}
	j.follower = &spans.Follower{
		Conn: o.Conn, Namespace: o.Namespace, Queue: spans.NewQueue(maxClosed),
		Next: make([]uint64, o.Partitions), Told: j.hear, Read: j.note,
	}
	j.flowDefault, _ = retention.ParseDefault(o.FlowDefault) // validated
	j.def, _ = retention.ParseDefault(o.Default)
	j.forget()
	return j, nil
}

// forget begins anew, with nothing read.
func (j *Janitor) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.index, j.waiting, j.due, j.unnamed = newIndex(), map[string][]member{}, nil, nil
	j.index.keepSoft, j.soft = j.o.SoftBytes > 0, newSoftRuns()
	j.latest, j.kin = make([]int64, j.o.Partitions), map[string]kinship{}
	for p := range j.o.Partitions {
		j.follower.Forget(p)
	}
}

// Run passes again and again until ctx ends, and returns nil. Whoever asks how long a run is kept
// is answered meanwhile. It begins and ends with nothing read and nothing remembered: another
// master may purge in between.
func (j *Janitor) Run(ctx context.Context) error {
	anew := func() {
		j.passing.Lock()
		defer j.passing.Unlock()
		j.forget()
	}
	anew()
	defer anew()
	j.follower.Queue.Listen(true)
	defer j.follower.Queue.Listen(false)
	stop, err := j.serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	stopDelete, err := j.serveDelete(ctx)
	if err != nil {
		return err
	}
	defer stopDelete()
	var sweeping sync.WaitGroup
	defer sweeping.Wait()
	sweeping.Go(func() { j.sweepOn(ctx) })
	sweeping.Go(func() { j.hearOn(ctx) })
	began := time.Now()
	tick := time.NewTicker(j.o.Every)
	defer tick.Stop()
	for {
		r, err := j.pass(ctx, time.Since(began) < j.o.Delay)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			j.o.Logger.WithField("err", err).
				Warn("closed runs could not be looked after; trying again")
		case r.Purged > 0:
			j.o.Logger.WithField("runs", r.Purged).WithField("kept", r.Kept).WithField("took",
				r.Took.Round(time.Millisecond)).Info("closed runs were purged")
		}
		if err == nil {
			safecall.Tell(j.o.Logger, j.o.Observer, r)
		}
		if !j.between(ctx, tick.C) {
			return nil
		}
	}
}

// between serves those who want runs deleted until the next pass. It reports false when ctx ends.
func (j *Janitor) between(ctx context.Context, next <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case d := <-j.asked:
			j.deleteFirst(ctx, d)
		case <-next:
			return true
		}
	}
}

// Pass reads what has closed since the last one, judges every group, and purges what is to go and
// may. It returns an error only if it could not; what it has read and purged by then counts.
func (j *Janitor) Pass(ctx context.Context) (*Report, error) { return j.pass(ctx, false) }

// pass is a pass that may only look.
func (j *Janitor) pass(ctx context.Context, lookOnly bool) (*Report, error) {
	j.passing.Lock()
	defer j.passing.Unlock()
	began := time.Now()
	if err := j.learn(ctx); err != nil {
		return nil, fmt.Errorf("retention: %w", err)
	}
	now, err := j.serverTime(ctx)
	if err != nil {
		return nil, fmt.Errorf("retention: %w", err)
	}
	j.expire(now)
	purged := 0
	if !lookOnly && j.purging.TryLock() { // else with the next pass
		defer j.purging.Unlock()
		if purged, err = j.purge(ctx, &look{j: j, now: now, checkpoints: map[int]schemas.Checkpoint{}}); err != nil {
			return nil, fmt.Errorf("retention: %w", err)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	r := &Report{Kept: j.index.size, Purged: purged, Waiting: len(j.due), Took: time.Since(began)}
	for _, held := range j.waiting {
		r.Blocked += len(held)
	}
	return r, nil
}

// learn reads which types are flows, and what has closed since the last time. The caller holds
// passing.
func (j *Janitor) learn(ctx context.Context) error {
	flows, err := j.o.Flows(ctx)
	if err != nil {
		return fmt.Errorf("which types are flows: %w", err)
	}
	j.mu.Lock()
	if !maps.Equal(j.flows, flows) {
		j.flows = flows
		j.index.touchAll() // what was the default of a type may be another
	}
	j.mu.Unlock()
	return j.follow(ctx)
}

// expire moves from the groups what their policies do not keep.
func (j *Janitor) expire(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	gone, hard := j.index.expire(j.defaultOf, now)
	j.enter(gone...)
	for _, e := range hard {
		j.soft.drop(e)
	}
	for _, g := range j.index.differ {
		if !j.warned[g.key] && len(j.warned) < mostWarned {
			j.warned[g.key] = true
			j.o.Logger.WithField("type", g.typ).WithField("retention", g.policy.String()).
				Warn("runs that are judged together say different retentions; that of the one " +
					"that closed last holds for all: give them different hashes, or one retention")
		}
	}
	j.index.differ = nil
}

const mostWarned = 100

// enter adds to what is to go. The caller holds mu.
func (j *Janitor) enter(all ...entry) {
	switch n := len(j.due); {
	case len(all) == 0:
	case len(all) == 1 && (n == 0 || byPlace(j.due[n-1], all[0]) < 0):
		// as runs without retention come while a partition is read
		j.due = append(j.due, all[0])
	default:
		j.due = append(j.due, all...)
		slices.SortFunc(j.due, byPlace)
		j.due = slices.Compact(j.due)
	}
}

// byPlace is the order in which runs are purged: those that lie beside each other cost a twentieth.
func byPlace(a, b entry) int {
	return cmp.Or(cmp.Compare(a.partition, b.partition), cmp.Compare(a.seq, b.seq))
}

// defaultOf is the policy of runs that say nothing. The caller holds mu.
func (j *Janitor) defaultOf(typ string) retention.Policy {
	if j.flows[typ] {
		return j.flowDefault
	}
	return j.def
}

// memberOf is what decides on the group of a closed run. part: it is a part of the run of a flow.
func memberOf(e entry, l *line, part bool) member {
	m := member{entry: e, typ: l.Type, parent: l.Parent, policy: policyOf(l.Retention)}
	switch {
	case l.Status == schemas.StatusContinuedAsNew:
		m.key = chainKey(l.WorkflowID, cmp.Or(l.FirstRun, l.Run))
	case m.policy != nil && m.policy.Hash != "":
		m.key = hashKey(m.policy.Hash)
	case part:
		m.key = partsKey(l.Parent.Run)
	default:
		m.key = typeKey(l.Type)
	}
	return m
}

// policyOf reads the policy of a run; nil if it has none.
func policyOf(w *schemas.RetentionPolicy) *retention.Policy {
	if w == nil {
		return nil
	}
	return new(retention.ReadPolicy(w.Hash, w.Disk, w.Soft, w.Disabled))
}

// place puts a closed run where it belongs: after the open run above it, among what is to go, or
// into its group.
func (j *Janitor) place(ctx context.Context, m member, l *line) error {
	k, err := j.kinOf(ctx, m.parent)
	if err != nil {
		return err
	}
	if l != nil && k.typ == m.typ && m.parent != nil {
		m = memberOf(m.entry, l, true)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case k.open != "":
		j.waiting[k.open] = append(j.waiting[k.open], m)
	case m.policy != nil && m.policy.Disabled:
		j.enter(m.entry)
	default:
		j.index.add(m)
	}
	return nil
}

// closed takes a run that has closed, and those that have waited for it.
func (j *Janitor) closed(ctx context.Context, e entry, l *line) error {
	if err := j.place(ctx, memberOf(e, l, false), l); err != nil {
		return err
	}
	j.mu.Lock()
	held := j.waiting[l.Run]
	j.mu.Unlock()
	if len(held) == 0 {
		return nil
	}
	delete(j.kin, l.Run)
	for i, m := range held { // perhaps after a run further up now
		if err := j.place(ctx, m, nil); err != nil {
			j.mu.Lock()
			j.waiting[l.Run] = slices.Clone(held[i:])
			j.mu.Unlock()
			return err
		}
	}
	j.mu.Lock()
	delete(j.waiting, l.Run)
	j.mu.Unlock()
	return nil
}
