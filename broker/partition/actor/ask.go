package actor

import "github.com/droverhq/drover/schemas"

// Ask is a decision task on its way.
//
// The server tells at once when nobody listens, but it does not tell when somebody does. A marker
// that we send to ourselves after the request settles it: the server works through a connection in
// order, so once the marker is back, a refusal would have been here. Only then DeciderStarted is a
// fact; until then the run's mailbox waits, for microseconds.
type Ask struct {
	ID        uint64 // of this owner's asks
	Token     string // that the answer brings back
	StartedID int64  // the id of its DeciderStarted
	At        schemas.Timestamp
	Sticky    bool // it went to the worker that answered last
	Marked    bool // the marker is on its way
	// Former is the prefix of the subjects of the owner that has asked, if it is another one.
	Former  string
	Passing bool // the answer is being passed on to the next owner
}
