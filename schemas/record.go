package schemas

// Position is a place in one of a partition's two logs. Sequence numbers are comparable only within
// one incarnation of the log: a stream that lost an unsynced tail hands out the same numbers again.
type Position struct {
	Incarnation uint32    `json:"incarnation"`
	Sequence    uint64    `json:"sequence"`
	Time        Timestamp `json:"time"`
}

// Before tells whether p lies before q. In different incarnations the server's time decides, where
// it is known: of a message that is read again nobody knows in which of several incarnations it was
// stored.
func (p Position) Before(q Position) bool {
	switch {
	case p.Incarnation == q.Incarnation:
		return p.Sequence < q.Sequence
	case p.Time == 0 || q.Time == 0:
		return p.Incarnation < q.Incarnation
	case p.Time == q.Time:
		return p.Sequence < q.Sequence
	}
	return p.Time < q.Time
}

// Later returns the later of p and q.
func (p Position) Later(q Position) Position {
	if p.Before(q) {
		return q
	}
	return p
}

// Record is one message of a history stream: all events of one step of one run, or nothing.
type Record struct {
	WorkflowID string `json:"workflowId"`
	Run        string `json:"run"`
	// First is the id of the first of Events.
	First  int64   `json:"first"`
	Events []Event `json:"events"`
	// Inbox and Signals are the highest positions of the two logs that this workflow id has
	// consumed.
	Inbox   Position `json:"inbox"`
	Signals Position `json:"signals"`
	// Fence is the sequence of the writer's fence record.
	Fence uint64 `json:"fence"`
	// Previous is the SHA-256 of the body of the run's record before this one; empty in the first.
	Previous []byte `json:"previous,omitempty"`
	// SnapshotSequence is the stream sequence of the run's latest record that carries a snapshot; 0
	// if none does yet.
	SnapshotSequence uint64 `json:"snapshotSequence,omitempty"`
	// Snapshot is the folded state after Events, encoded; present every few hundred events.
	Snapshot []byte `json:"snapshot,omitempty"`
}

// Last is the id of the last of Events.
func (r *Record) Last() int64 { return r.First + int64(len(r.Events)) - 1 }

// Fence is the record that a new owner of a partition writes before anything else.
type Fence struct {
	Claim uint64    `json:"claim"`
	Owner string    `json:"owner"`
	Time  Timestamp `json:"time"`
	// Padding is zeros in the first fence of a partition that an earlier version has made. It is
	// not written any more.
	Padding []byte `json:"padding,omitempty"`
}

// Checkpoint says from where a new owner of a partition reads. Effects is the position in the
// history stream up to which every effect of every record is acknowledged.
type Checkpoint struct {
	Inbox   Position `json:"inbox"`
	Signals Position `json:"signals"`
	Effects uint64   `json:"effects"`
	Fence   uint64   `json:"fence"`
	// Server is the id of the NATS server that acknowledged what stands below the positions:
	// another one may have lost an unsynced tail of tasks and alarms. Alarms is the highest
	// sequence of an alarm that was acknowledged.
	Server string `json:"server,omitempty"`
	Alarms uint64 `json:"alarms,omitempty"`
	// History is the highest record of a run that was committed. A history without it has lost its
	// end.
	History uint64 `json:"history,omitempty"`
	// Witness is the begin of the SHA-256 of that record, 32 hex digits.
	Witness string `json:"witness,omitempty"`
	// Handed is what an owner that leaves as planned tells the next one, be it nothing. No other
	// checkpoint has it.
	Handed *Handed `json:"handed,omitempty"`
}

// Handed is what the history does not tell about the decisions that the runs of a partition wait
// for.
type Handed struct {
	// Replies begins the subjects to which the deciders that have been asked answer. The owner that
	// leaves listens there until all have answered, and passes the answers on.
	Replies string           `json:"replies,omitempty"`
	Wanted  []HandedDecision `json:"wanted,omitempty"` // the decisions that runs wait for
}

// HandedDecision is a decision that a run waits for.
type HandedDecision struct {
	WorkflowID string `json:"workflowId"`
	Run        string `json:"run"` // empty if it was not in memory
	// Token is that of the task that a decider is at work on. Without one no decider is asked now,
	// and the next owner asks.
	Token     string    `json:"token,omitempty"`
	StartedID int64     `json:"startedId,omitempty"` // of the task
	At        Timestamp `json:"at,omitempty"`        // when it was sent
	// Replies is that of an earlier owner to whom the answer goes; empty if it is the one that
	// leaves.
	Replies string `json:"replies,omitempty"`
}

// DeadLetter is a message that could not be applied, and why.
type DeadLetter struct {
	V       int       `json:"v,omitempty"`
	Reason  string    `json:"reason"`
	Details string    `json:"details,omitempty"`
	Subject string    `json:"subject"`
	Time    Timestamp `json:"time"`
	Body    []byte    `json:"body,omitempty"`
}
