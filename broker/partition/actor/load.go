package actor

import "github.com/droverhq/drover/broker/partition/loop"

// Load says whether messages can happen to a run, or wait until what is known of it is read.
type Load uint8

const (
	Loaded  Load = iota // the state is known, and that it is nil if the workflow id has no run
	loading             // something is read of it, or stored for it: messages wait
	later               // a later version may have written its history: messages wait
	aside               // its history is damaged: messages become dead letters
	loadStates
)

// loadEvent is what changes a Load.
type loadEvent uint8

const (
	begins loadEvent = iota // to be read, or what it needs to be stored
	ends
	readable  // its history can be followed
	isLater   // it cannot: a later version may have written it
	isDamaged // it cannot
	loadEvents
)

// loadMoves is the transition table: the next state, by state and event. A run whose history cannot
// be followed is read again and again, and stays what it is until that succeeds.
var loadMoves = [loadStates][loadEvents]Load{
	//       begins   ends    readable isLater isDamaged
	Loaded:  {loading, Loaded, Loaded, later, aside},
	loading: {loading, Loaded, loading, later, aside},
	later:   {later, later, loading, later, aside},
	aside:   {aside, aside, loading, later, aside},
}

func (l *Load) on(e loadEvent) { *l = loadMoves[*l][e] }

// Begin lets messages wait until End.
func (l *Load) Begin() { l.on(begins) }

// End says that what has begun is over.
func (l *Load) End() { l.on(ends) }

// Readable says that the history can be followed.
func (l *Load) Readable() { l.on(readable) }

// Unreadable says that the history cannot be followed: it is damaged, or of a later version
// perhaps.
func (l *Load) Unreadable(ofLater bool) {
	if ofLater {
		l.on(isLater)
	} else {
		l.on(isDamaged)
	}
}

// Waits tells whether nothing can happen to the run now.
func (l Load) Waits() bool { return l != Loaded }

// IsUnreadable tells whether the history cannot be followed.
func (l Load) IsUnreadable() bool { return l == later || l == aside }

// IsAside tells whether nothing waits for the run, since its history is damaged.
func (l Load) IsAside() bool { return l == aside }

// Damage is what is known of a run whose history cannot be followed. The zero value is that of one
// that can.
type Damage struct {
	Err       error // why it cannot be followed; nil if it can
	Tries     int   // loads that failed in a row
	Overflown bool  // of what waits some is not in the mailbox
	// Look is when it is read again, by Again.
	Look  *loop.Timer
	Again func()
}
