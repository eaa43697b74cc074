package schemas

import (
	"cmp"
	"fmt"
	"math"

	"github.com/droverhq/drover/internal/bucketkey"
)

// MaxLockLimit is the most places that a lock may have.
const MaxLockLimit = 1000

// LockRecord is the value of a lock's key in the bucket of locks, as JSON: who holds the lock and
// who waits for it. The key is deleted when nobody does either.
type LockRecord struct {
	V     int    `json:"v,omitempty"`
	Lock  string `json:"lock"`
	Scope string `json:"scope,omitempty"`
	// Limit is how many holders there may be.
	Limit int `json:"limit"`
	// Next is the fence that the next holder gets.
	Next uint64 `json:"next"`
	// Holders stand in the order of their fences, Waiters in the order in which they came.
	Holders []LockPlace `json:"holders"`
	Waiters []LockPlace `json:"waiters,omitempty"`
}

// LockPlace is the place of a run in a lock. Run and EventID name the LockRequested that asked for
// it: a run that continues another keeps the place of the chain.
type LockPlace struct {
	WorkflowID string `json:"workflowId"`
	Run        string `json:"run"`
	EventID    int64  `json:"eventId"`
	// FirstRun is the first run of the chain that the run belongs to; empty if it is the run
	// itself.
	FirstRun string `json:"firstRun,omitempty"`
	// Fence is that of a holder; 0 for who waits.
	Fence uint64 `json:"fence,omitempty"`
	// Since is when it became a holder, or began to wait.
	Since Timestamp `json:"since"`
	// Lease is how long it may keep the lock from others; 0 means until it gives it back.
	Lease Duration `json:"lease,omitempty"`
}

// Is tells whether two places are the same: the fence and the time may differ.
func (p *LockPlace) Is(o *LockPlace) bool {
	return p.WorkflowID == o.WorkflowID && p.Run == o.Run && p.EventID == o.EventID
}

// Chain is the first run of the chain that the place belongs to.
func (p *LockPlace) Chain() string { return cmp.Or(p.FirstRun, p.Run) }

// Expires is when the lease of a holder runs out, by the server's clock; 0 if it has none, or one
// beyond all time.
func (p *LockPlace) Expires() Timestamp {
	if !p.Lease.Limited() || p.Since > math.MaxInt64-Timestamp(p.Lease) {
		return 0
	}
	return p.Since.Add(p.Lease)
}

// LockKey is the key of a lock in its bucket: <scope>.<name>. Every byte outside A-Z a-z 0-9 _ - is
// written =XX, and no scope is "=", which looks like no escape.
func LockKey(scope, lock string) string {
	return cmp.Or(bucketkey.Escape(scope), "=") + "." + bucketkey.Escape(lock)
}

// ValidateLock checks the name and the scope of a lock. The error names the field.
func ValidateLock(lock, scope string) error {
	if err := ValidateID("lock", lock); err != nil {
		return err
	}
	if scope == "" {
		return nil
	}
	return ValidateID("scope", scope)
}

// ParseLock reads the value of a key of the bucket of locks. One that belongs to another key, or
// has holes, is refused: anybody may have written it by hand.
func ParseLock(key string, value []byte) (*LockRecord, error) {
	r := new(LockRecord)
	if err := Unmarshal(value, r); err != nil {
		return nil, err
	}
	if own := LockKey(r.Scope, r.Lock); own != key {
		return nil, fmt.Errorf("%w: the value belongs to the key %s", ErrMalformed, own)
	}
	if r.Limit < 1 || r.Limit > MaxLockLimit || len(r.Holders) > r.Limit {
		return nil, fmt.Errorf("%w: %d holders and a limit of %d; want a limit from 1 to %d",
			ErrMalformed, len(r.Holders), r.Limit, MaxLockLimit)
	}
	last := uint64(0)
	for i, h := range r.Holders {
		if h.WorkflowID == "" || h.Run == "" || h.EventID < 1 || h.Fence <= last ||
			h.Fence >= r.Next {
			return nil, fmt.Errorf(
				"%w: holders[%d] needs a workflowId, a run, an eventId, and a fence above those "+
					"before it and below next", ErrMalformed, i)
		}
		last = h.Fence
	}
	for i, w := range r.Waiters {
		if w.WorkflowID == "" || w.Run == "" || w.EventID < 1 || w.Fence != 0 {
			return nil, fmt.Errorf(
				"%w: waiters[%d] needs a workflowId, a run and an eventId, and no fence",
				ErrMalformed, i)
		}
	}
	return r, nil
}

// LocksRequest lists locks that are held, in the order of their keys. Lock and Scope together name
// one; else both are left out.
type LocksRequest struct {
	V      int    `json:"v,omitempty"`
	Lock   string `json:"lock,omitempty"`
	Scope  string `json:"scope,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// LocksResponse is a page of locks; Cursor continues it and is empty at its end.
type LocksResponse struct {
	V      int          `json:"v,omitempty"`
	Locks  []LockRecord `json:"locks"`
	Cursor string       `json:"cursor,omitempty"`
	Error  *Error       `json:"error,omitempty"`
}

// OpenLock is a lock that a run holds or waits for.
type OpenLock struct {
	Lock  string `json:"lock"`
	Scope string `json:"scope,omitempty"`
	// Fence is 0 while the run waits.
	Fence   uint64    `json:"fence,omitempty"`
	Since   Timestamp `json:"since"`
	Expires Timestamp `json:"expires,omitempty"`
	// Holder is the ancestor that holds the lock, if the run may enter because of it.
	Holder *Execution `json:"holder,omitempty"`
	// Run and EventID name the LockRequested.
	Run     string `json:"run"`
	EventID int64  `json:"eventId"`
}
