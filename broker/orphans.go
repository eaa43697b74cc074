package broker

import (
	"context"
	"time"
)

// orphanRetry is how soon the end of the inbox is asked for again when the server did not answer.
const orphanRetry = 200 * time.Millisecond

// orphans are the signals whose workflow is unknown or closed. Each waits until the inbox has been read up to where it stood when the signal came: the
// start that came before it may still be in there (P-12).
//
// Anybody may publish signals, and the inbox may have a long way to go. So each costs the same, however many wait, and there are no more of them than
// their log's allowance has room for: the others stay in their stream.
type orphans struct {
	queue []*orphan            // the oldest first
	of    map[string][]*orphan // by workflow id, the oldest first
	next  uint64               // the number of the next one
	asked uint64               // the end of the inbox is known, or being asked for, of all before this number
	ends  []orphansEnd         // that are known, the nearest first
	ready uint64               // all before this number have waited long enough
	taken int                  // of the queue, those that wait no more
	// polling: the end of the inbox is being asked for.
	polling bool
}

// orphan is one of them; it has no message once it waits no more.
type orphan struct {
	n uint64
	e *message
}

// orphansEnd is up to where the inbox must have been read for the orphans before a number.
type orphansEnd struct{ before, end uint64 }

func (o *orphans) add(e *message) {
	if o.of == nil {
		o.of = make(map[string][]*orphan)
	}
	one := &orphan{n: o.next, e: e}
	o.next++
	o.queue = append(o.queue, one)
	o.of[e.wid] = append(o.of[e.wid], one)
}

// take removes and returns those of a workflow id.
func (o *orphans) take(wid string) (all []*message) {
	for _, one := range o.of[wid] {
		all = append(all, one.e)
		one.e = nil
		o.taken++
	}
	delete(o.of, wid)
	if o.taken > len(o.queue)/2 { // so that what is taken costs as much as it has cost to come
		kept := make([]*orphan, 0, len(o.queue)-o.taken)
		for _, one := range o.queue {
			if one.e != nil {
				kept = append(kept, one)
			}
		}
		o.queue, o.taken = kept, 0
	}
	return all
}

// know notes where the inbox ended after all before a number had come.
func (o *orphans) know(before, end uint64) {
	if n := len(o.ends); n > 0 && o.ends[n-1].end == end {
		o.ends[n-1].before = before
		return
	}
	o.ends = append(o.ends, orphansEnd{before: before, end: end})
}

// pop removes and returns the oldest one if its wait is over, now that the inbox has been read up to at; else nil.
func (o *orphans) pop(at uint64) *message {
	for len(o.ends) > 0 && o.ends[0].end <= at {
		o.ready = o.ends[0].before
		o.ends = o.ends[1:]
	}
	for len(o.queue) > 0 && o.queue[0].n < o.ready {
		one := o.queue[0]
		o.queue[0] = nil
		o.queue = o.queue[1:]
		if one.e == nil {
			o.taken--
			continue
		}
		wid := one.e.wid
		if o.of[wid] = o.of[wid][1:]; len(o.of[wid]) == 0 { // it is the oldest of its id as well
			delete(o.of, wid)
		}
		return one.e
	}
	return nil
}

// orphan keeps a signal whose workflow is unknown or closed.
func (p *partition) orphan(e *message) {
	e.kept = true
	p.orphans.add(e)
	p.seekEnd()
}

// seekEnd asks for the end of the inbox if it is not known of all orphans.
func (p *partition) seekEnd() {
	o := &p.orphans
	if o.polling || o.asked == o.next {
		return
	}
	before := o.next
	o.polling, o.asked = true, before
	writeAsync(p.b, p.loop, func(ctx context.Context) (uint64, error) {
		_, last, err := p.b.reads.StreamState(ctx, p.intakes[inboxLog].stream)
		return last, err
	}, func(last uint64, err error) {
		o.polling = false
		if err != nil {
			o.asked = 0
			p.loop.after(orphanRetry, p.seekEnd)
			return
		}
		o.know(before, last)
		p.adopt()
		p.seekEnd()
	})
}

// adopt judges, in order, the orphans whose wait is over.
func (p *partition) adopt() {
	for e := p.orphans.pop(p.intakes[inboxLog].at); e != nil; e = p.orphans.pop(p.intakes[inboxLog].at) {
		e.final, e.kept = true, false
		p.deliver(p.get(e.wid), e)
	}
}

// takeOrphans removes and returns the orphans of a workflow id: its run has come.
func (p *partition) takeOrphans(wid string) []*message {
	all := p.orphans.take(wid)
	for _, e := range all {
		e.kept = false
	}
	return all
}
