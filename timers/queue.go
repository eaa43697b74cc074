package timers

import "github.com/droverhq/drover/internal/compactmap"

// The queue of a book is a binary heap of numbers; each alarm knows its place in it. The heap of
// the standard library would put every number that it is given or gives into memory of its own.

// put queues an alarm for a time, or moves it to where that says.
func (b *alarmIndex) put(id compactmap.ID, at int64) {
	a := b.alarms.At(id)
	a.fireAt(at)
	if a.place == firing {
		b.queue = append(b.queue, id)
		a.place = int32(len(b.queue) - 1)
	}
	b.settle(int(a.place))
}

// next takes out the first alarm if it is to ring at now or earlier.
func (b *alarmIndex) next(now int64) (compactmap.ID, bool) {
	if len(b.queue) == 0 || b.alarms.At(b.queue[0]).at() > now {
		return 0, false
	}
	id := b.queue[0]
	b.remove(0)
	return id, true
}

// remove takes the alarm at a place out.
func (b *alarmIndex) remove(i int) {
	id, last := b.queue[i], len(b.queue)-1
	b.alarms.At(id).place = firing
	moved := b.queue[last]
	if b.queue = b.queue[:last]; i < last {
		b.seat(i, moved)
		b.settle(i)
	}
	if c := cap(b.queue); c > 1024 && last < c/4 {
		b.queue = append(make([]compactmap.ID, 0, c/2), b.queue...)
	}
}

func (b *alarmIndex) seat(i int, id compactmap.ID) {
	b.queue[i] = id
	b.alarms.At(id).place = int32(i)
}

func (b *alarmIndex) at(i int) int64 { return b.alarms.At(b.queue[i]).at() }

// settle moves the alarm at a place up or down to where it belongs.
func (b *alarmIndex) settle(i int) {
	id := b.queue[i]
	at := b.alarms.At(id).at()
	for i > 0 && at < b.at((i-1)/2) {
		b.seat(i, b.queue[(i-1)/2])
		i = (i - 1) / 2
	}
	for {
		least := 2*i + 1
		if least+1 < len(b.queue) && b.at(least+1) < b.at(least) {
			least++
		}
		if least >= len(b.queue) || at <= b.at(least) {
			break
		}
		b.seat(i, b.queue[least])
		i = least
	}
	b.seat(i, id)
}
