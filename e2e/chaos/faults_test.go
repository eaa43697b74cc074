package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/faultproxy"
	"github.com/droverhq/drover/internal/sleep"
)

// fault is something that is done to a member, or to the links of a client. It returns when it is undone.
type fault struct {
	kind string
	// hits are the kinds of members that it can be done to; "client" stands for the clients.
	hits []string
	// least and most bound how long it lasts.
	least, most time.Duration
	do          func(v *victim, d time.Duration)
}

// victim is what a fault is done to.
type victim struct {
	w       *world
	name    string
	kind    string
	member  *member // nil for a client
	proxies []*faultproxy.Proxy
	rng     *rand.Rand
	busy    *sync.Mutex
}

const milli = time.Millisecond

// The kinds of members that faults are done to.
var (
	drovers   = []string{"broker", "timers", "server"}
	workers   = []string{"decider", "worker", "pair"}
	processes = append(slices.Clone(drovers), append(workers, "claimer")...)
	linked    = []string{"broker", "broker", "timers", "decider", "worker", "pair", "claimer", "client"}
)

// doubled are the subjects of messages that may come twice. Alarms are not among them: one that comes again after its
// deletion stays until it is due, and only its owner writes it, once.
var doubled = []string{"drover.default.in.", "drover.default.task.", "drover.default.history.", "drover.default.dead."}

// faults are all there are. Each topology has those for which it has a victim.
var faults = []fault{
	{"kill -9", processes, 0, 2 * time.Second, func(v *victim, d time.Duration) { v.down(syscall.SIGKILL, d) }},
	{"kill -9", drovers, 0, 2 * time.Second, func(v *victim, d time.Duration) { v.down(syscall.SIGKILL, d) }},
	{"planned stop", processes, 0, time.Second, func(v *victim, d time.Duration) { v.down(syscall.SIGTERM, d) }},
	{"pause beyond the TTL", append([]string{"broker"}, processes...), ttl + 500*milli, ttl + 2500*milli, (*victim).pause},
	{"kill -9 of NATS", []string{"nats"}, 0, 1500 * milli, func(v *victim, d time.Duration) { v.down(syscall.SIGKILL, d) }},
	{"cut", linked, 200 * milli, 4 * time.Second, func(v *victim, d time.Duration) {
		v.links(d, func(p *faultproxy.Proxy) { p.Cut() })
	}},
	{"reset", linked, 0, 200 * milli, func(v *victim, d time.Duration) {
		v.links(d, func(p *faultproxy.Proxy) { p.Break() })
	}},
	{"half-open to the server", linked, 500 * milli, 5 * time.Second, func(v *victim, d time.Duration) {
		v.links(d, func(p *faultproxy.Proxy) { p.HalfOpen(faultproxy.ToServer) })
	}},
	{"half-open to the client", linked, 500 * milli, 5 * time.Second, func(v *victim, d time.Duration) {
		v.links(d, func(p *faultproxy.Proxy) { p.HalfOpen(faultproxy.ToClient) })
	}},
	{"held back to the server", linked, 500 * milli, 4 * time.Second, func(v *victim, d time.Duration) {
		v.links(d, func(p *faultproxy.Proxy) { p.Stall(faultproxy.ToServer) })
	}},
	{"held back to the client", linked, 500 * milli, 4 * time.Second, func(v *victim, d time.Duration) {
		v.links(d, func(p *faultproxy.Proxy) { p.Stall(faultproxy.ToClient) })
	}},
	{"delay", linked, time.Second, 3 * time.Second, func(v *victim, d time.Duration) {
		v.links(d, func(p *faultproxy.Proxy) { p.Delay(20*milli, 60*milli) })
	}},
	{"lost answers", linked, time.Second, 4 * time.Second, func(v *victim, d time.Duration) {
		v.links(d, func(p *faultproxy.Proxy) { p.DropReplies(some(0.2, "drover.", "$KV.")) })
	}},
	{"doubled messages", []string{"broker", "timers", "worker", "pair"}, time.Second, 4 * time.Second, func(v *victim, d time.Duration) {
		after := time.Duration(v.rng.IntN(2)*v.rng.IntN(500)) * milli
		v.links(d, func(p *faultproxy.Proxy) { p.Duplicate(some(0.5, doubled...), after) })
	}},
	{"postponed messages", []string{"broker", "timers", "worker", "pair"}, time.Second, 4 * time.Second, func(v *victim, d time.Duration) {
		late := time.Duration(5+v.rng.IntN(400)) * milli
		v.links(d, func(p *faultproxy.Proxy) { p.Postpone(some(0.1, "drover.", "$KV."), late) })
	}},
	{"leader step-down", []string{"nats-node"}, 0, 100 * milli, (*victim).stepDown},
	{"kill -9 of a NATS node", []string{"nats-node"}, 500 * milli, 4 * time.Second, func(v *victim, d time.Duration) { v.down(syscall.SIGKILL, d) }},
	{"pause of a NATS node", []string{"nats-node"}, time.Second, 8 * time.Second, (*victim).pause},
	{"routes of a NATS node cut", []string{"nats-node"}, time.Second, 8 * time.Second, (*victim).isolate},
}

// stopsPartitions are the kinds of members whose processes' faults can keep a partition from answering: their recovery is
// measured.
var stopsPartitions = []string{"broker", "server", "nats", "nats-node"}

// some matches a share of the subjects that begin with one of prefixes. Pause and resume are left out: of one that found
// nothing to do no history tells, so its double may do something later.
func some(share float64, prefixes ...string) func(string) bool {
	return func(subject string) bool {
		if strings.HasSuffix(subject, ".pause") || strings.HasSuffix(subject, ".resume") {
			return false
		}
		return rand.Float64() < share && slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(subject, p) })
	}
}

func (v *victim) down(s syscall.Signal, d time.Duration) {
	limit := patience
	v.member.end(s, limit)
	v.wait(d)
	v.member.up()
	v.member.awaitBack()
}

func (v *victim) pause(d time.Duration) {
	p := v.member.now()
	v.member.signal(p, syscall.SIGSTOP)
	v.wait(d)
	v.member.signal(p, syscall.SIGCONT)
}

func (v *victim) links(d time.Duration, fail func(*faultproxy.Proxy)) {
	for _, p := range v.proxies {
		fail(p)
	}
	v.wait(d)
	for _, p := range v.proxies {
		p.Heal()
	}
}

func (v *victim) isolate(d time.Duration) {
	for _, p := range v.w.routes[v.name] {
		p.Cut()
	}
	v.wait(d)
	for _, p := range v.w.routes[v.name] {
		p.Heal()
	}
}

// stepDown lets the leader of one stream step down. That nobody answers is no fault of anybody's.
func (v *victim) stepDown(d time.Duration) {
	n := v.rng.IntN(partitions)
	streams := []string{namespace.StreamHistory(n), namespace.StreamIn(n), namespace.StreamAlarms(n), namespace.StreamSignals(), namespace.StreamTasks(planList), "KV_" + namespace.BucketClaims()}
	stream := streams[v.rng.IntN(len(streams))]
	ctx, cancel := context.WithTimeout(v.w.t.Context(), 5*time.Second)
	defer cancel()
	if _, err := natsconn.Of(v.w.direct).Request(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil, nil); err != nil {
		v.w.t.Logf("step-down of %s: %v", stream, err)
	}
	v.wait(d)
}

func (v *victim) wait(d time.Duration) { sleep.For(v.w.t.Context(), d) }

// awaitBack waits until a member that was let up lives again, ready or not.
func (m *member) awaitBack() {
	limit := time.Now().Add(patience)
	for time.Now().Before(limit) {
		select {
		case <-m.now().ended:
			time.Sleep(10 * time.Millisecond)
		default:
			return
		}
	}
	m.w.violation("%s does not start again", m.name)
}

// victims are all that faults can be done to, by kind.
func (w *world) victims() map[string][]*victim {
	all := map[string][]*victim{}
	for _, m := range w.members {
		kind := m.kind
		if kind == "nats" && len(w.servers) > 1 {
			kind = "nats-node"
		}
		all[kind] = append(all[kind], &victim{w: w, name: m.name, kind: kind, member: m, proxies: m.proxies, busy: &m.busy})
	}
	for _, c := range w.clients {
		all["client"] = append(all["client"], &victim{w: w, kind: "client", name: fmt.Sprintf("client-%d", c.n), proxies: c.proxies, busy: new(sync.Mutex)})
	}
	return all
}

// schedule injects faults until stop is closed, one after the other in each lane. Between two of them so many operations
// are acknowledged, or so much time passes: a fleet that stands still is to be hit too.
type schedule struct {
	w       *world
	lane    int
	rng     *rand.Rand
	victims map[string][]*victim
	apart   int // acknowledged operations, at most
	most    time.Duration
}

func (w *world) schedule(lane int, victims map[string][]*victim, apart int, most time.Duration) *schedule {
	return &schedule{w: w, lane: lane, rng: rand.New(rand.NewPCG(w.o.seed, 1<<40+uint64(lane))), victims: victims, apart: apart, most: most}
}

// draw chooses a fault, and whom it hits.
func (s *schedule) draw() (fault, *victim) {
	for {
		f := faults[s.rng.IntN(len(faults))]
		kinds := slices.DeleteFunc(slices.Clone(f.hits), func(k string) bool { return len(s.victims[k]) == 0 })
		if len(kinds) == 0 {
			continue
		}
		all := s.victims[kinds[s.rng.IntN(len(kinds))]]
		return f, all[s.rng.IntN(len(all))]
	}
}

// run injects faults until stop is closed.
func (s *schedule) run(stop <-chan struct{}) {
	for s.pass(stop) {
		f, v := s.draw()
		if v.busy.TryLock() { // else another lane is at work on it
			s.inject(f, v)
			v.busy.Unlock()
		}
	}
}

// plan injects the named faults, "kind/victim", in this order.
func (s *schedule) plan(names []string) {
	for _, name := range names {
		kind, target, _ := strings.Cut(name, "/")
		f := faults[slices.IndexFunc(faults, func(f fault) bool { return f.kind == kind })]
		all := slices.Concat(slices.Collect(maps.Values(s.victims))...)
		v := all[slices.IndexFunc(all, func(v *victim) bool { return v.name == target })]
		s.pass(nil)
		v.busy.Lock()
		s.inject(f, v)
		v.busy.Unlock()
	}
}

// inject does a fault. Its victim is locked.
func (s *schedule) inject(f fault, v *victim) {
	d := f.least + time.Duration(s.rng.Int64N(int64(f.most-f.least)+1))
	seed := s.rng.Uint64()
	one := *v
	one.rng = rand.New(rand.NewPCG(seed, 1))
	s.w.report.fault(injected{Kind: f.kind, Target: v.name, measured: slices.Contains(stopsPartitions, v.kind), At: time.Now(), For: d.Round(milli).String()})
	s.w.t.Logf("%s of %s for %v", f.kind, v.name, d.Round(milli))
	f.do(&one, d)
}

// pass waits until it is time for the next fault.
func (s *schedule) pass(stop <-chan struct{}) bool {
	want := 1 + s.rng.IntN(s.apart)
	first, _, _, more := s.w.rec.Counts()
	limit := time.NewTimer(s.most)
	defer limit.Stop()
	for ok := first; ok < first+want; ok, _, _, more = s.w.rec.Counts() {
		select {
		case <-more:
		case <-limit.C:
			return true
		case <-stop:
			return false
		}
	}
	select {
	case <-stop:
		return false
	default:
		return true
	}
}
