package intake

// Early are the signals whose workflow is unknown or closed. Each waits until the inbox has been
// read up to where it ended when the signal came: the start that came before it may still be in
// there (P-12). M is a signal. The zero value is ready to use.
//
// Anybody may publish signals, and the inbox may have a long way to go. So each costs the same,
// however many wait, and there are no more of them than their log's allowance has room for: the
// others stay in their stream.
type Early[M any] struct {
	queue []*early[M]            // the oldest first
	of    map[string][]*early[M] // by workflow id, the oldest first
	next  uint64                 // the number of the next one
	asked uint64                 // the end of the inbox is known, or asked for, of all before it
	ends  []earlyEnd             // that are known, the nearest first
	ready uint64                 // all before this number have waited long enough
	taken int                    // of the queue, those that wait no more
	// asking: the end of the inbox is being asked for.
	asking bool
}

// early is one of them. It is gone once it waits no more.
type early[M any] struct {
	n    uint64
	wid  string
	m    M
	gone bool
}

// earlyEnd is up to where the inbox must have been read for the signals before a number.
type earlyEnd struct{ before, end uint64 }

// Len is how many wait.
func (o *Early[M]) Len() int { return len(o.queue) - o.taken }

// Add lets a signal to a workflow id wait.
func (o *Early[M]) Add(wid string, m M) {
	if o.of == nil {
		o.of = make(map[string][]*early[M])
	}
	one := &early[M]{n: o.next, wid: wid, m: m}
	o.next++
	o.queue = append(o.queue, one)
	o.of[wid] = append(o.of[wid], one)
}

// Take removes and returns those of a workflow id, in their order.
func (o *Early[M]) Take(wid string) (all []M) {
	for _, one := range o.of[wid] {
		all = append(all, one.m)
		one.drop()
		o.taken++
	}
	delete(o.of, wid)
	if o.taken > len(o.queue)/2 { // so that what is taken costs as much as it has cost to come
		kept := make([]*early[M], 0, len(o.queue)-o.taken)
		for _, one := range o.queue {
			if !one.gone {
				kept = append(kept, one)
			}
		}
		o.queue, o.taken = kept, 0
	}
	return all
}

func (e *early[M]) drop() {
	var none M
	e.m, e.gone = none, true
}

// Ask tells whether the end of the inbox must be asked for now, and for the signals before which
// number: it is not known of all, and is not being asked for. The answer goes to Know or to Failed.
func (o *Early[M]) Ask() (before uint64, ask bool) {
	if o.asking || o.asked == o.next {
		return 0, false
	}
	o.asking, o.asked = true, o.next
	return o.next, true
}

// Failed notes that the question was not answered.
func (o *Early[M]) Failed() { o.asking, o.asked = false, 0 }

// Know notes where the inbox ended after all before a number had come.
func (o *Early[M]) Know(before, end uint64) {
	o.asking = false
	if n := len(o.ends); n > 0 && o.ends[n-1].end == end {
		o.ends[n-1].before = before
		return
	}
	o.ends = append(o.ends, earlyEnd{before: before, end: end})
}

// Pop removes and returns the oldest one if its wait is over, now that the inbox has been read up
// to at.
func (o *Early[M]) Pop(at uint64) (m M, ok bool) {
	for len(o.ends) > 0 && o.ends[0].end <= at {
		o.ready = o.ends[0].before
		o.ends = o.ends[1:]
	}
	for len(o.queue) > 0 && o.queue[0].n < o.ready {
		one := o.queue[0]
		o.queue[0] = nil
		o.queue = o.queue[1:]
		if one.gone {
			o.taken--
			continue
		}
		if o.of[one.wid] = o.of[one.wid][1:]; len(o.of[one.wid]) == 0 {
			// the oldest of its id as well
			delete(o.of, one.wid)
		}
		return one.m, true
	}
	return m, false
}
