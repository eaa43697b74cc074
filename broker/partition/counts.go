package partition

// Counts is how much an owner keeps in mind.
type Counts struct {
	Runs       int // in memory, passivated or not
	Letters    int // dead letters of signals that are not read again
	RequestIDs int // in the index of ids
}

// Counts asks the partition's loop. It waits for it, so the partition must be owned.
func (p *Partition) Counts() Counts {
	answer := make(chan Counts)
	p.Post(func() {
		answer <- Counts{
			Runs: p.cache.Len() + p.deadlines.Passive.Len(), Letters: p.intake.Letters.Remembered(),
			RequestIDs: p.repeats.Len(),
		}
	})
	return <-answer
}

// Post has f run on the partition's loop, after what it was given before.
func (p *Partition) Post(f func()) { p.Loop.Post(f) }
