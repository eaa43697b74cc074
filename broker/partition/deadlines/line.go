package deadlines

import "time"

// Line is the line of the runs whose alarm is made durable after a delay. All wait equally long, so
// they come in the order in which they stand. The zero value is ready to use.
//
// Considered: a timer of the loop for each. A run that has closed meanwhile, as most do, stayed in
// memory until then, and was looked at once more.
type Line[R comparable] struct {
	line  []inLine[R]
	first uint64 // the place of the first of them, from 1 on; it only grows
}

type inLine[R comparable] struct {
	run R // the zero value: has left
	at  time.Time
}

// Enter lets a run wait until an instant, and returns its place, which is never 0. alone says that
// nobody else waits.
func (l *Line[R]) Enter(r R, at time.Time) (place uint64, alone bool) {
	if alone = len(l.line) == 0; alone {
		l.first++
	}
	place = l.first + uint64(len(l.line))
	l.line = append(l.line, inLine[R]{r, at})
	return place, alone
}

// Leave takes the run at a place out of the line.
func (l *Line[R]) Leave(place uint64) {
	var none R
	l.line[place-l.first].run = none
}

// Next removes and returns the first run if its time has come. Those that have left are passed
// over.
func (l *Line[R]) Next(now time.Time) (r R, ok bool) {
	var none R
	for len(l.line) > 0 && !l.line[0].at.After(now) {
		r = l.line[0].run
		l.line[0] = inLine[R]{}
		l.line, l.first = l.line[1:], l.first+1
		if r != none {
			return r, true
		}
	}
	return none, false
}

// Wait is when to look again; false if nobody waits.
func (l *Line[R]) Wait(now time.Time) (time.Duration, bool) {
	if len(l.line) == 0 {
		l.line = nil
		return 0, false
	}
	return l.line[0].at.Sub(now), true
}
