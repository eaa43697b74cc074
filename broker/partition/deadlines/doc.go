// Package deadlines keeps what the owner of a partition knows of the instants at which something is
// due, and of the runs that wait for them: the alarm of each run, the line of those that are armed
// after a delay, the batches of alarms that timer workers have fired, the order in which runs were
// used, and the passivated runs.
//
// Each part is a type that knows no partition and owns no goroutine: its methods change its state
// and say what is to be done. All of it belongs to the loop of the partition.
//
// Invariants:
//   - An alarm counts as armed only if its acknowledgement came, and nothing fired it since (P-10).
//   - A timer worker is told that an alarm is done once, or that the owner refuses it.
//   - A run is kept passivated only if everything that its owner must know of it is kept (I15).
package deadlines

// Deadlines is the state of one term of a partition. R is a run.
type Deadlines[R comparable] struct {
	Armed   uint64 // the highest sequence of an acknowledged alarm
	Line    Line[R]
	Batches Batches
	Eraser  Eraser
	Usage   Usage[R]
	Passive Passivated
	waking  []R // passivated runs that are to be read
}

// New returns that of a new term.
func New[R comparable]() Deadlines[R] {
	return Deadlines[R]{Batches: newBatches(), Passive: NewPassivated()}
}

// Wake has a passivated run read with the next Waking.
func (d *Deadlines[R]) Wake(r R) { d.waking = append(d.waking, r) }

// Waking returns the runs that are to be read, and forgets them.
func (d *Deadlines[R]) Waking() []R {
	all := d.waking
	d.waking = nil
	return all
}
