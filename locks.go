package drover

import (
	"context"
	"iter"

	"github.com/droverhq/drover/schemas"
)

// LocksOptions filter [Client.Locks].
type LocksOptions struct {
	// Lock and Scope name one lock; the empty scope is that of the namespace. Without a lock all
	// are listed that are in use.
	Lock, Scope string
	// Limit ends the list after so many locks. Defaults to 0, all of them.
	Limit int
}

// Locks yields the locks that are held, with who holds them and who waits, in the order of their
// keys. One lock is read as it is; a list is what the broker that answers has seen, milliseconds
// ago. The sequence ends with the last lock, or with an error, which is its last value.
func (c *Client) Locks(ctx context.Context, o LocksOptions) iter.Seq2[schemas.LockRecord, error] {
	q := query{verb: "locks"}
	fetch := func(cursor string, size int) ([]schemas.LockRecord, string, error) {
		req := &schemas.LocksRequest{
			V: schemas.Version, Lock: o.Lock, Scope: o.Scope, Limit: size, Cursor: cursor,
		}
		page, err := call(ctx, c, q, req,
			func(a *schemas.LocksResponse) *schemas.Error { return a.Error })
		if err != nil {
			return nil, "", err
		}
		return page.Locks, page.Cursor, nil
	}
	return pages(q, o.Limit, fetch)
}

// BreakLock takes a lock from the run, which goes on: what it guards may then be used by two. The
// next one in line gets the lock. The history of the run tells who took it and why. scope is empty
// for that of the namespace.
//
// Errors: [ErrNotFound], [ErrClosed], [ErrConflict] if the run does not hold the lock,
// [ErrInvalid], [ErrUnavailable], [ErrTimeout].
func (r *Run) BreakLock(ctx context.Context, lock, scope, reason string) error {
	return r.operate(ctx, "breakLock",
		schemas.ExecutionRequest{Lock: lock, Scope: scope, Reason: reason})
}
