package runs

import (
	"context"
	"time"

	"github.com/droverhq/drover/schemas"
)

// maxCount bounds how much a count reads: what it has counted by then is the answer, with
// CountResponse.Truncated.
const maxCount = 5 * time.Second

// Count counts the runs that match.
func (r *Reader) Count(
	ctx context.Context, q *schemas.CountRequest,
) (*schemas.CountResponse, error) {
	if err := validateStatus(q.Status); err != nil {
		return nil, err
	}
	limit := maxCount
	if q.Wait > 0 {
		limit = min(limit, q.Wait.Std())
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a := &schemas.CountResponse{V: schemas.Version}
	err := r.walk(bounded, q.List(), 0, 1, func(_ int, _ uint64, i *schemas.ExecutionInfo) error {
		if i != nil {
			a.Count++
		}
		return bounded.Err()
	})
	if err != nil {
		if bounded.Err() == nil || ctx.Err() != nil {
			return nil, err
		}
		a.Truncated = true
	}
	return a, nil
}
