package broker

import "time"

// arming is the line of the runs whose alarm is made durable once AlarmDelay is over. All wait equally long, so they come in the order in
// which they stand.
//
// Considered: a timer of the loop for each. A run that has closed meanwhile, as most do, stayed in memory until then, and was looked at once more.
type arming struct {
	line  []armingOf
	first uint64 // the place of the first of them, from 1 on; it only grows
}

type armingOf struct {
	run *run // nil: has closed
	at  time.Time
}

func (p *partition) armLater(r *run) {
	a := &p.arming
	if len(a.line) == 0 {
		a.first++ // no place is 0
		p.loop.after(p.b.o.AlarmDelay, p.armDelayed)
	}
	r.alarm.queued, r.alarm.place = true, a.first+uint64(len(a.line))
	a.line = append(a.line, armingOf{r, time.Now().Add(p.b.o.AlarmDelay)})
}

// armNever takes a run that has closed out of the line.
func (p *partition) armNever(r *run) {
	if r.alarm.place == 0 {
		return
	}
	p.arming.line[r.alarm.place-p.arming.first].run = nil
	r.alarm.queued, r.alarm.place = false, 0
}

// armDelayed arms those who have stood in line for long enough.
func (p *partition) armDelayed() {
	a, now := &p.arming, time.Now()
	for len(a.line) > 0 && !a.line[0].at.After(now) {
		r := a.line[0].run
		a.line[0] = armingOf{}
		a.line, a.first = a.line[1:], a.first+1
		if r != nil {
			r.alarm.queued, r.alarm.place = false, 0
			p.armNow(r)
		}
	}
	if len(a.line) == 0 {
		a.line = nil
		return
	}
	p.loop.after(a.line[0].at.Sub(now), p.armDelayed)
}
