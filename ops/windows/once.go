package windows

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

const (
	// tries is how often a question to the bucket is asked that nobody has answered, and between is
	// the pause before the next.
	tries   = 3
	between = 100 * time.Millisecond
)

// Once tells whether the caller is the first of the present period, by the clock of the NATS
// server. The error is a [*schemas.Error] that names the field, or that of a stream.
func (w *Windows) Once(ctx context.Context, q *ops.OnceRequest) (*ops.OnceResponse, error) {
	if err := schemas.ValidateID("name", q.Name); err != nil {
		return nil, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("name").
			WithHint("say what is to be done once a period, such as daily-report")
	}
	for _, f := range []struct{ field, text string }{
		{"caller", q.Caller}, {"workflowId", q.WorkflowID}, {"run", q.Run},
	} {
		if f.text == "" {
			continue
		}
		if err := schemas.ValidateID(f.field, f.text); err != nil {
			return nil, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField(f.field).
				WithHint("shorten it, or leave it out")
		}
	}
	now, err := w.serverTime(ctx)
	if err != nil {
		return nil, err
	}
	period, begins, ends, err := calendar.PeriodOf(q.Period, q.TimeZone, now)
	if err != nil {
		return nil, err
	}
	mine := &ops.PeriodRecord{
		V: schemas.Version, Name: q.Name, Period: period, Caller: q.Caller, At: schemas.At(now),
		WorkflowID: q.WorkflowID, Run: q.Run, Identity: q.Identity,
	}
	if mine.Caller == "" {
		mine.Caller = ulid.Make().String()
	}
	by, err := w.take(ctx, onceKey(q.Name, period), mine, life(begins, ends))
	if err != nil {
		return nil, err
	}
	return &ops.OnceResponse{
		V: schemas.Version, First: by.Caller == mine.Caller, Period: period,
		Begins: schemas.At(begins), Ends: schemas.At(ends), By: by,
	}, nil
}

// take creates the key of a period, unless it exists, and returns whose it is.
func (w *Windows) take(
	ctx context.Context, key string, mine *ops.PeriodRecord, ttl time.Duration,
) (by *ops.PeriodRecord, err error) {
	body, err := schemas.MarshalJSON(mine)
	if err != nil {
		return nil, err
	}
	bucket := w.o.Namespace.BucketSchedules()
	for try := range tries {
		if try > 0 && sleep.For(ctx, between) != nil {
			break
		}
		if _, err = w.o.Conn.KVCreate(ctx, bucket, key, body, ttl); err == nil {
			return mine, nil
		}
		if !errors.Is(err, natsconn.ErrWrongSequence) && !errors.Is(err, natsconn.ErrTimeout) {
			continue
		}
		var value []byte
		if value, _, err = w.o.Conn.KVGet(ctx, bucket, key); err != nil {
			continue // it may have expired in between
		}
		by = &ops.PeriodRecord{}
		if err := schemas.Unmarshal(value, by); err != nil {
			return nil, schemas.Errorf(schemas.CodeInternal, "the key %s of bucket %s is "+
				"damaged: %v", key, bucket, err).WithHint(
				"delete it with: nats kv del %s %s; the period then counts as not taken",
				bucket, key)
		}
		return by, nil
	}
	return nil, fmt.Errorf("windows: the period is not taken: %w", err)
}

func refuseOnce(_ *ops.OnceRequest, e *schemas.Error) *ops.OnceResponse {
	return &ops.OnceResponse{V: schemas.Version, Error: e}
}
