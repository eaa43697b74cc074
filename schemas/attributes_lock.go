package schemas

// LockRequested asks for a lock.
type LockRequested struct {
	Lock                    string   `json:"lock"`
	Scope                   string   `json:"scope,omitempty"`
	Limit                   int      `json:"limit,omitempty"`
	Lease                   Duration `json:"lease,omitempty"`
	DeciderCompletedEventID int64    `json:"deciderCompletedEventId"`
}

// LockAcquired says that the run holds the lock; Fence grows with every holder. Expires is when a
// lease runs out. With Holder it is an ancestor of the run that holds the lock, and the run may
// enter for as long as that does.
type LockAcquired struct {
	Lock             string     `json:"lock"`
	Scope            string     `json:"scope,omitempty"`
	Fence            uint64     `json:"fence"`
	Expires          Timestamp  `json:"expires,omitempty"`
	Holder           *Execution `json:"holder,omitempty"`
	ScheduledEventID int64      `json:"scheduledEventId"`
}

// LockRefused says that the run does not get the lock, and does not wait for it. ScheduledEventID
// names the LockRequested; it is 0 if the decision was refused at once. With the decision
// ReleaseLock it was that one, and nothing has changed.
type LockRefused struct {
	Lock                    string       `json:"lock"`
	Scope                   string       `json:"scope,omitempty"`
	Cause                   Cause        `json:"cause"`
	Details                 string       `json:"details,omitempty"`
	ScheduledEventID        int64        `json:"scheduledEventId,omitempty"`
	DeciderCompletedEventID int64        `json:"deciderCompletedEventId"`
	Decision                DecisionType `json:"decision,omitempty"`
}

// LockReleased gives the lock back.
type LockReleased struct {
	Lock                    string `json:"lock"`
	Scope                   string `json:"scope,omitempty"`
	Fence                   uint64 `json:"fence,omitempty"`
	DeciderCompletedEventID int64  `json:"deciderCompletedEventId,omitempty"`
}

// LockBroken says that the lock was taken away from the run: by an operator, because its lease ran
// out and another wanted it, or because the key of the lock was changed by hand.
type LockBroken struct {
	Lock      string `json:"lock"`
	Scope     string `json:"scope,omitempty"`
	Fence     uint64 `json:"fence,omitempty"`
	Cause     Cause  `json:"cause,omitempty"`
	Reason    string `json:"reason,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	Identity  string `json:"identity,omitempty"`
}

// HeldLock is a lock that a run has from the one which it continues. Run and EventID name the
// LockRequested by which the chain got it: so its place in the key is known.
type HeldLock struct {
	Lock    string     `json:"lock"`
	Scope   string     `json:"scope,omitempty"`
	Limit   int        `json:"limit,omitempty"`
	Lease   Duration   `json:"lease,omitempty"`
	Fence   uint64     `json:"fence,omitempty"`
	Expires Timestamp  `json:"expires,omitempty"`
	Holder  *Execution `json:"holder,omitempty"`
	Run     string     `json:"run"`
	EventID int64      `json:"eventId"`
}

// StateRequested asks for a read or change of a state key.
type StateRequested struct {
	Decision                DecisionType `json:"decision"`
	Key                     string       `json:"key"`
	Scope                   string       `json:"scope,omitempty"`
	Value                   Payload      `json:"value,omitempty"`
	Require                 Payload      `json:"require,omitempty"`
	DeciderCompletedEventID int64        `json:"deciderCompletedEventId"`
}

// StateRead answers a read. A key that does not exist has no revision.
type StateRead struct {
	Key              string  `json:"key"`
	Scope            string  `json:"scope,omitempty"`
	Value            Payload `json:"value,omitempty"`
	Revision         uint64  `json:"revision,omitempty"`
	ScheduledEventID int64   `json:"scheduledEventId"`
}

// StateSet says that a state key has its new value.
type StateSet struct {
	Key              string `json:"key"`
	Scope            string `json:"scope,omitempty"`
	Revision         uint64 `json:"revision"`
	ScheduledEventID int64  `json:"scheduledEventId"`
}

// StateCleared says that a state key is gone.
type StateCleared struct {
	Key              string `json:"key"`
	Scope            string `json:"scope,omitempty"`
	ScheduledEventID int64  `json:"scheduledEventId"`
}

// StateRefused says that a request for a state key was not carried out: what it required does not
// hold, and Value is what the key has, or it breaks a rule. ScheduledEventID names the
// StateRequested; it is 0 if the decision was refused at once.
type StateRefused struct {
	Key                     string  `json:"key"`
	Scope                   string  `json:"scope,omitempty"`
	Cause                   Cause   `json:"cause"`
	Value                   Payload `json:"value,omitempty"`
	Details                 string  `json:"details,omitempty"`
	ScheduledEventID        int64   `json:"scheduledEventId,omitempty"`
	DeciderCompletedEventID int64   `json:"deciderCompletedEventId"`
}

// ReplayPointSet marks a step from which the run may be replayed.
type ReplayPointSet struct {
	Name                    string  `json:"name"`
	State                   Payload `json:"state,omitempty"`
	Only                    bool    `json:"only,omitempty"`
	DeciderCompletedEventID int64   `json:"deciderCompletedEventId"`
}

// ReplayPoint is a replay point that holds. EventID names the ReplayPointSet, which has the state.
type ReplayPoint struct {
	Name    string    `json:"name"`
	EventID int64     `json:"eventId"`
	Time    Timestamp `json:"time"`
}

// ReplayPointsReset forgets every replay point.
type ReplayPointsReset struct {
	DeciderCompletedEventID int64 `json:"deciderCompletedEventId"`
}

// RetentionSet changes how long the run is kept after it closes. Policy is what the expression came
// to mean at that moment.
type RetentionSet struct {
	Retention               string           `json:"retention"`
	Hash                    string           `json:"hash,omitempty"`
	Policy                  *RetentionPolicy `json:"policy,omitempty"`
	DeciderCompletedEventID int64            `json:"deciderCompletedEventId"`
}

// RetentionPolicy is a retention that refers to nothing else: Disk and Soft are counts, durations,
// forever, min(...) and max(...). Hash names the group of the run in place of its workflow type.
type RetentionPolicy struct {
	Hash     string `json:"hash,omitempty"`
	Disk     string `json:"disk"`
	Soft     string `json:"soft"`
	Disabled bool   `json:"disabled,omitempty"`
}
