package schemas

// LockRequested asks for a lock.
type LockRequested struct {
	Lock                    string   `json:"lock"`
	Scope                   string   `json:"scope,omitempty"`
	Limit                   int      `json:"limit,omitempty"`
	Lease                   Duration `json:"lease,omitempty"`
	DeciderCompletedEventID int64    `json:"deciderCompletedEventId"`
}

// LockAcquired says that the run holds the lock; Fence grows with every holder.
type LockAcquired struct {
	Lock             string `json:"lock"`
	Scope            string `json:"scope,omitempty"`
	Fence            uint64 `json:"fence"`
	ScheduledEventID int64  `json:"scheduledEventId"`
}

// LockReleased gives the lock back.
type LockReleased struct {
	Lock                    string `json:"lock"`
	Scope                   string `json:"scope,omitempty"`
	Fence                   uint64 `json:"fence,omitempty"`
	DeciderCompletedEventID int64  `json:"deciderCompletedEventId,omitempty"`
}

// LockBroken says that an operator took the lock away.
type LockBroken struct {
	Lock     string `json:"lock"`
	Scope    string `json:"scope,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Identity string `json:"identity,omitempty"`
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

// StateRead answers a read.
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

// StateRefused says that the requirement of a change was not met.
type StateRefused struct {
	Key              string  `json:"key"`
	Scope            string  `json:"scope,omitempty"`
	Cause            Cause   `json:"cause"`
	Value            Payload `json:"value,omitempty"`
	ScheduledEventID int64   `json:"scheduledEventId"`
}

// ReplayPointSet marks a step from which the run may be replayed.
type ReplayPointSet struct {
	Name                    string  `json:"name"`
	State                   Payload `json:"state,omitempty"`
	Only                    bool    `json:"only,omitempty"`
	DeciderCompletedEventID int64   `json:"deciderCompletedEventId"`
}

// ReplayPointsReset forgets every replay point.
type ReplayPointsReset struct {
	DeciderCompletedEventID int64 `json:"deciderCompletedEventId"`
}

// RetentionSet changes how long the run is kept after it closes.
type RetentionSet struct {
	Retention               string `json:"retention"`
	Hash                    string `json:"hash,omitempty"`
	DeciderCompletedEventID int64  `json:"deciderCompletedEventId"`
}
