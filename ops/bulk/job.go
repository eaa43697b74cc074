package bulk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// prefix is that of the workflow ids of jobs, and of the keys of their records.
const (
	prefix    = "bulk-"
	keyPrefix = "bulk."
)

// key is that of the record of a job.
func key(id string) string { return keyPrefix + subject.Token(id) }

// job is a job with its record, as it was read.
type job struct {
	ops.BulkRecord
	id  string // the ULID in its name
	rev uint64
}

// jobOf is the job that an activity belongs to. Without a record there is none: its run was not
// started by the verb.
func (b *Bulk) jobOf(ctx context.Context) (*job, error) {
	wid := activity.Info(ctx).WorkflowID
	j, err := b.read(ctx, key(wid))
	if errors.Is(err, natsconn.ErrNotFound) {
		return nil, activity.Final(fmt.Errorf("workflow %q is no bulk job: begin one with drover "+
			"bulk, or with the verb bulk of the API", wid))
	}
	if err == nil && j.Request.Job != wid {
		err = fmt.Errorf("the record is that of %q", j.Request.Job)
	}
	return j, err
}

func (b *Bulk) read(ctx context.Context, key string) (*job, error) {
	value, rev, err := b.o.Conn.KVGet(ctx, b.o.Namespace.BucketSchedules(), key)
	if err != nil {
		return nil, err
	}
	j := &job{rev: rev}
	if err := schemas.Unmarshal(value, &j.BulkRecord); err != nil {
		return nil, fmt.Errorf("the record of a bulk job, key %s: %w", key, err)
	}
	j.id = strings.TrimPrefix(j.Request.Job, prefix)
	return j, nil
}

// write writes the record of a job; with revision 0 a new one.
func (b *Bulk) write(ctx context.Context, r *ops.BulkRecord, rev uint64) error {
	body, err := schemas.MarshalJSON(r)
	if err != nil {
		return err
	}
	bucket, key := b.o.Namespace.BucketSchedules(), key(r.Request.Job)
	if rev == 0 {
		_, err = b.o.Conn.KVCreate(ctx, bucket, key, body, 0)
	} else {
		_, err = b.o.Conn.KVUpdate(ctx, bucket, key, body, rev, 0)
	}
	return err
}

// jobs are the keys of the jobs that have not ended, as far as anybody has seen.
func (b *Bulk) jobs(ctx context.Context) ([]string, error) {
	return b.o.Conn.KVMatching(ctx, b.o.Namespace.BucketSchedules(), keyPrefix+"*")
}

// tidy takes the records of jobs away whose runs have closed, and tells whether others are left.
func (b *Bulk) tidy(ctx context.Context) (left bool, err error) {
	keys, err := b.jobs(ctx)
	if err != nil {
		return false, err
	}
	for _, k := range keys {
		j, err := b.read(ctx, k)
		if errors.Is(err, natsconn.ErrNotFound) {
			continue // a marker
		}
		if err != nil {
			return true, err
		}
		ended, err := b.ended(ctx, j)
		if err != nil {
			return true, err
		}
		if !ended {
			left = true
			continue
		}
		if _, err := b.o.Conn.KVExpunge(ctx, b.o.Namespace.BucketSchedules(), k, j.rev,
			markerFor); err != nil && !errors.Is(err, natsconn.ErrWrongSequence) {
			return true, err
		}
	}
	return left, nil
}

// ended tells whether the run of a job has closed, or has not begun for long.
func (b *Bulk) ended(ctx context.Context, j *job) (bool, error) {
	d := &schemas.DescribeResponse{}
	err := b.ask(ctx, "describe",
		&schemas.ExecutionRequest{V: schemas.Version, WorkflowID: j.Request.Job}, d, &d.Error)
	if errors.Is(err, &schemas.Error{Code: schemas.CodeNotFound}) {
		now, err := b.o.Conn.StreamTime(ctx, b.o.Namespace.StreamHistory(0))
		return err == nil && now.Sub(j.At.Time()) > beginsWithin, err
	}
	if err != nil {
		return false, err
	}
	return d.Execution.Status.Closed() && d.Execution.Status != schemas.StatusContinuedAsNew, nil
}
