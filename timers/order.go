package timers

// order holds the alarms in the order of their messages, so that the first one that is still needed is known: what stands
// before it in the stream may be purged at once, which costs the server as much as the deletion of one message does.
//
// Considered: to look for the smallest sequence in the book. It holds everything up while it looks at a million alarms.
type order struct {
	entries []entry // dead ones included
	last    uint64  // the highest sequence that was read
}

type entry struct {
	seq   uint64
	alarm *alarm
}

// dead tells whether the message is not needed any more: it was replaced, or what it is for is done.
func (e entry) dead() bool { return e.alarm.seq != e.seq }

// add notes a message that was read; live is how many are needed. It drops the dead once they are the greater part.
func (o *order) add(seq uint64, a *alarm, live int) {
	o.last = max(o.last, seq)
	if len(o.entries) > 2*live+1024 {
		kept := make([]entry, 0, live+512)
		for _, e := range o.entries {
			if !e.dead() {
				kept = append(kept, e)
			}
		}
		o.entries = kept
	}
	o.entries = append(o.entries, entry{seq, a})
}

// lowest gives the sequence below which nothing is needed.
func (o *order) lowest() uint64 {
	for len(o.entries) > 0 && o.entries[0].dead() {
		o.entries[0] = entry{}
		o.entries = o.entries[1:]
	}
	if len(o.entries) == 0 {
		o.entries = nil
		return o.last + 1
	}
	return o.entries[0].seq
}
