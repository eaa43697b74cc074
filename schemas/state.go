package schemas

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/droverhq/drover/internal/bucketkey"
)

const (
	// MaxStateValue is how large the value of a state key may be, and what is required of it,
	// bytes.
	MaxStateValue = 64 << 10
	// MaxStateWrites is how many writes of a state key may be in it and not settled.
	MaxStateWrites = 1000
)

// StateRecord is the value of a key of the bucket of state keys, as JSON.
//
// By is the write that made the value what it is. Unsettled are the writes, in their order, of
// which the histories of their runs may not tell yet: a write that is repeated after a crash is
// recognised here, also when somebody else has written since. A write is taken out when its owner
// knows that the history has the answer.
type StateRecord struct {
	V     int    `json:"v,omitempty"`
	Key   string `json:"key"`
	Scope string `json:"scope,omitempty"`
	// Value is absent if the key was cleared and is about to be deleted.
	Value     Payload      `json:"value"`
	Cleared   bool         `json:"cleared,omitempty"`
	At        Timestamp    `json:"at"`
	By        StateWrite   `json:"by"`
	Unsettled []StateWrite `json:"unsettled,omitempty"`
}

// StateWrite is a write of a state key. Run and EventID name the StateRequested.
type StateWrite struct {
	WorkflowID string `json:"workflowId"`
	Run        string `json:"run"`
	EventID    int64  `json:"eventId"`
	// Revision is that of the write; 0 if it is the last one, which has the revision of the key.
	Revision uint64 `json:"revision,omitempty"`
}

// Is tells whether two writes are the same; the revision does not matter.
func (w *StateWrite) Is(o *StateWrite) bool {
	return w.WorkflowID == o.WorkflowID && w.Run == o.Run && w.EventID == o.EventID
}

// StateKey is the key of a state key in its bucket, <scope>.<key>, written as [LockKey] writes
// names.
func StateKey(scope, key string) string {
	return cmp.Or(bucketkey.Escape(scope), "=") + "." + bucketkey.Escape(key)
}

const lockPrefix = "lock-"

// StateLock tells whether a state key is a view of a lock, and of which: "lock-NAME" is one of lock
// NAME.
func StateLock(key string) (lock string, ok bool) {
	if lock, ok = strings.CutPrefix(key, lockPrefix); !ok {
		return "", false
	}
	return lock, lock != ""
}

// LockState is the state key that is a view of a lock.
func LockState(lock string) string { return lockPrefix + lock }

// ValidateState checks the name and the scope of a state key. The error names the field.
func ValidateState(key, scope string) error {
	if err := ValidateID("key", key); err != nil {
		return err
	}
	if scope == "" {
		return nil
	}
	return ValidateID("scope", scope)
}

// ParseState reads the value of a key of the bucket of state keys. One that belongs to another key,
// or has holes, is refused: anybody may have written it by hand.
func ParseState(key string, value []byte) (*StateRecord, error) {
	r := new(StateRecord)
	if err := Unmarshal(value, r); err != nil {
		return nil, err
	}
	if own := StateKey(r.Scope, r.Key); own != key {
		return nil, fmt.Errorf("%w: the value belongs to the key %s", ErrMalformed, own)
	}
	for i, w := range r.Unsettled {
		if w.WorkflowID == "" || w.Run == "" || w.EventID < 1 {
			return nil, fmt.Errorf("%w: unsettled[%d] needs a workflowId, a run and an eventId",
				ErrMalformed, i)
		}
	}
	return r, nil
}
