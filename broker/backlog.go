package broker

import (
	"iter"
	"strings"
	"time"

	"github.com/droverhq/drover/schemas"
)

// A run that wants a decision and whose type nobody decides for is backlog. It waits in the backlog of its type, and may be parked meanwhile as what
// sleeps (park.go): while a fleet of workers is away, starts go on.
//
//   - One run of each type is asked for once a second, for all of them.
//   - When somebody answers, or announces himself, the runs are called back in the order in which they came, and not all at once: a worker that is asked
//     for 100,000 decisions in one moment has answered the last of them long behind its deadline, and what all of them wait for is in the memory again.
//   - Their alarms are for the next owner, who knows of no backlog, and are further apart the more there are: each costs a read and two writes.

const (
	// leastCalled is how many runs of a type are asked for at once at first, and mostCalled how many at most.
	leastCalled = 128
	mostCalled  = 16384
	// learnFrom is from how many answers their mean is taken, and by how many the width changes then.
	learnFrom = 64
	// soonAnswered is how long answers may take for the width to grow, if they do not take longer than confirmAfter, as those of deciders that think for long
	// do: the start of what is answered later than that is a record of its own, which makes a busy server slower, and the next answers later.
	soonAnswered = schemas.Duration(confirmAfter / 8)
	// alarmsEachSecond is how many alarms of its backlog runs a partition has in a second, if they are many, and longestReask how far apart those of one
	// run are at most.
	alarmsEachSecond = 256
	longestReask     = schemas.Duration(10 * time.Minute)
)

// backlogs are the workflow ids of the backlog runs.
type backlogs struct {
	of map[string]*backlogQueue // by workflow type: only those that a run waits for
	at map[string]backlogPlace
}

type backlogPlace struct {
	of *backlogQueue
	i  int
}

// backlogQueue is the backlog of one type.
type backlogQueue struct {
	typ   string
	order []string // from head on; "" has left
	head  int
	n     int

	// width is how many may be called back at once. It grows while answers take hardly longer than when there were leastCalled.
	width, recalled int
	usual           schemas.Duration // that time
	answers         int              // since the width was looked at, and their time
	took            schemas.Duration
}

// add takes a run in, behind the others, or before them: one that was called back in vain keeps its turn.
func (b *backlogs) add(typ, wid string, first bool) {
	if _, waits := b.at[wid]; waits {
		return
	}
	l := b.of[typ]
	if l == nil {
		l = &backlogQueue{typ: typ, width: leastCalled}
		b.of[typ] = l
	}
	wid = strings.Clone(wid) // what it came in need not stay
	l.n++
	if first && l.head > 0 {
		l.head--
		l.order[l.head] = wid
		b.at[wid] = backlogPlace{l, l.head}
		return
	}
	l.order = append(l.order, wid)
	b.at[wid] = backlogPlace{l, len(l.order) - 1}
}

// compact takes the places out that are empty, but for one at the beginning.
func (b *backlogs) compact(l *backlogQueue) {
	order := make([]string, 1, l.n+1)
	for _, wid := range l.order[l.head:] {
		if wid != "" {
			b.at[wid] = backlogPlace{l, len(order)}
			order = append(order, wid)
		}
	}
	l.order, l.head = order, 1
}

func (b *backlogs) has(wid string) bool {
	_, waits := b.at[wid]
	return waits
}

// remove takes a run out. Types are names that anybody may give: nothing is kept of one that no run waits for.
func (b *backlogs) remove(wid string) {
	at, waits := b.at[wid]
	if !waits {
		return
	}
	delete(b.at, wid)
	l := at.of
	l.order[at.i] = ""
	for l.head < len(l.order) && l.order[l.head] == "" {
		l.head++
	}
	switch l.n--; {
	case l.n == 0:
		delete(b.of, l.typ)
	case len(l.order) > 2*l.n+1024:
		b.compact(l)
	}
}

// oldest are the workflow ids, those of each type in the order in which they came.
func (b *backlogs) oldest() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, l := range b.of {
			for _, wid := range l.order[l.head:] {
				if wid != "" && !yield(wid) {
					return
				}
			}
		}
	}
}

// apart is how far apart the alarms of a backlog run are at least.
func (b *backlogs) apart() schemas.Duration {
	return min(schemas.Duration(len(b.at))*schemas.Seconds(1)/alarmsEachSecond, longestReask)
}

// answered learns from an answer how many to call back at once. Means are compared, since the decisions of a type may differ, and with that of the
// least width, which is taken anew each time: who compares with the last one follows a worker that falls behind.
func (l *backlogQueue) answered(took schemas.Duration) {
	l.took += took
	if l.answers++; l.answers < learnFrom {
		return
	}
	mean := l.took / learnFrom
	l.answers, l.took = 0, 0
	switch {
	case mean > soonAnswered && mean < schemas.Duration(confirmAfter):
		l.width = max(l.width/2, leastCalled)
	case l.width == leastCalled:
		l.usual = mean
		l.width += learnFrom
	case mean <= l.usual+l.usual/4:
		l.width = min(l.width+learnFrom, mostCalled)
	default:
		l.width = max(l.width/2, leastCalled)
	}
}

// enterBacklog lets a run wait for somebody to listen: nobody did.
func (p *partition) enterBacklog(r *run) {
	r.noPoller = true
	r.reasks++
	p.backlog.add(r.state.Start.WorkflowType, r.wid, r.recalled != nil)
	p.endRecall(r)
	p.probeLater()
}

// leaveBacklog takes a run out of those that wait for somebody to listen.
func (p *partition) leaveBacklog(r *run) {
	if r.noPoller {
		r.noPoller = false
		p.backlog.remove(r.wid)
	}
}

// rejoinBacklog is called for a run that was loaded: it may have been parked while it was backlog.
func (p *partition) rejoinBacklog(r *run) {
	if !p.backlog.has(r.wid) {
		return
	}
	if !r.open() {
		p.backlog.remove(r.wid)
		return
	}
	r.noPoller, r.reasks = true, manyReasks
}

// announced: somebody decides for the type. Runs that wait for that are called back, many at a time: those that lie together are read together.
func (p *partition) announced(typ string) {
	l := p.backlog.of[typ]
	if l == nil || l.recalled > l.width/2 {
		return
	}
	for l.recalled < l.width && l.n > 0 {
		p.recallNext(l)
	}
}

// recallNext asks for the run that has waited longest.
func (p *partition) recallNext(l *backlogQueue) {
	wid := l.order[l.head]
	p.backlog.remove(wid)
	r := p.get(wid)
	l.recalled++
	r.recalled = l
	p.when(r, func() {
		r.noPoller = false
		p.mark(r)
	})
}

// endRecall: the question for a run that was called back has come to its end, or there was none.
func (p *partition) endRecall(r *run) {
	if r.recalled != nil {
		r.recalled.recalled--
		r.recalled = nil
	}
}

// probeLater asks for one run of each type in a while: deciders in other languages need not announce themselves.
func (p *partition) probeLater() {
	if p.probing {
		return
	}
	p.probing = true
	p.loop.after(probeEvery, p.probeBacklog)
}

func (p *partition) probeBacklog() {
	p.probing = false
	for _, l := range p.backlog.of {
		p.recallNext(l)
	}
	if len(p.backlog.of) > 0 {
		p.probeLater()
	}
}
