package deadlines

// Eraser are the alarms of closed runs that are to be deleted, by their sequence. The zero value is
// ready to use.
type Eraser struct {
	waiting []uint64
	sent    int // on their way
}

// Add adds an alarm.
func (e *Eraser) Add(seq uint64) { e.waiting = append(e.waiting, seq) }

// Next takes the next alarm to delete, if fewer than most are on their way. Its outcome goes to
// Done.
func (e *Eraser) Next(most int) (seq uint64, ok bool) {
	if len(e.waiting) == 0 || e.sent >= most {
		return 0, false
	}
	seq, e.waiting = e.waiting[0], e.waiting[1:]
	e.sent++
	return seq, true
}

// Done notes that one is no longer on its way.
func (e *Eraser) Done() { e.sent-- }
