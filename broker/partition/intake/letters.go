package intake

import (
	"strconv"
	"strings"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/schemas"
)

// Letters is what an owner knows of the places of dead letters: of its own, and of those of signals
// that a predecessor has written. The zero value is ready to use.
type Letters struct {
	next uint64 // numbers messages of no log
	// before has the signals above the checkpoint whose letters a predecessor has written, by
	// place.
	before map[string]bool
}

// Tail is the part of a dead letter's subject that tells the log the message stood in.
func Tail(partition, log int) []string {
	return []string{strconv.Itoa(partition), []string{"in", "signals", "none"}[log]}
}

// PlaceIn is where a message stood that was stored at an instant: its dead letter is written once
// for each place. The server's time tells apart messages of one sequence in a stream that lost its
// tail. Their incarnation does not: it is known of the last two only.
func PlaceIn(partition, log int, seq uint64, stored schemas.Timestamp) dead.Place {
	tail := Tail(partition, log)
	return dead.Place{
		Partition: tail[0], Stream: tail[1], Incarnation: strconv.FormatInt(int64(stored), 10),
		Sequence: seq,
	}
}

// Number numbers a message that stood in no log.
func (l *Letters) Number() uint64 {
	l.next++
	return l.next
}

// Wrote notes that a predecessor wrote a letter, by its subject, whose last four tokens are the
// place.
func (l *Letters) Wrote(subj string) {
	if l.before == nil {
		l.before = make(map[string]bool)
	}
	tokens := strings.Split(subj, ".")
	l.before[strings.Join(tokens[max(len(tokens)-4, 0):], ".")] = true
}

// Forget forgets the letters of predecessors: what was in the log at take-over comes once.
func (l *Letters) Forget() { l.before = nil }

// Remembered is how many letters of predecessors are kept in mind.
func (l *Letters) Remembered() int { return len(l.before) }

// Took tells whether a predecessor wrote the letter of a place, and forgets it.
func (l *Letters) Took(at dead.Place) bool {
	if len(l.before) == 0 {
		return false
	}
	place := strings.Join(at.Tokens(), ".")
	found := l.before[place]
	delete(l.before, place)
	return found
}
