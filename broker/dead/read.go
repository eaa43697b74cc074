package dead

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// Reader lists and counts the dead letters of a namespace. Its functions block while they read.
type Reader struct {
	Conn      *natsconn.Conn
	Namespace subject.Namespace
	// Reasons are those of the letters that programs of this version write.
	Reasons []string
}

// errFull ends a scan.
var errFull = errors.New("the page is full")

// List returns a page of letters: at most limit of them, in about quota bytes, and at least one if
// there is any.
func (r *Reader) List(
	ctx context.Context, q *schemas.DeadRequest, limit, quota int,
) (*schemas.DeadResponse, error) {
	a := &schemas.DeadResponse{V: schemas.Version, Letters: []schemas.DeadEntry{}}
	options := natsconn.ReadOptions{
		FilterSubjects: []string{r.filter(q)},
		StartSeq:       FirstAfter(q.After),
	}
	full := false
	err := r.Conn.Scan(ctx, r.Namespace.StreamDead(), options, func(m natsconn.Stored) error {
		quota -= 2 * len(m.Data)
		if len(a.Letters) == limit || quota < 0 && len(a.Letters) > 0 {
			full = true
			return errFull
		}
		e := schemas.DeadEntry{Sequence: m.Seq}
		if err := schemas.Unmarshal(m.Data, &e.DeadLetter); err != nil {
			e.DeadLetter = schemas.DeadLetter{
				Reason: "unreadable", Details: err.Error(), Subject: m.Subject,
				Time: schemas.At(m.Time), Body: m.Data,
			}
		}
		a.Letters, a.After = append(a.Letters, e), m.Seq
		return nil
	})
	if err != nil && !full {
		return nil, err
	}
	if !full {
		a.After = 0
	}
	return a, nil
}

func (r *Reader) filter(q *schemas.DeadRequest) string {
	if q.Reason != "" {
		return r.Namespace.Dead(q.Reason) + ".>"
	}
	return r.Namespace.AllDead()
}

// Count counts letters by the reason in their subjects. The server counts those of each reason that
// is known, without reading them. They are read if some are left over, which programs of other
// versions have written, or if the server does not count; and if only those after one are asked
// for: it would have to look at each.
func (r *Reader) Count(ctx context.Context, q *schemas.DeadRequest) (*schemas.DeadResponse, error) {
	counts, complete := map[string]int64{}, false
	if q.After == 0 {
		counts, complete = r.countReasons(ctx, q)
	}
	if !complete {
		var err error
		if counts, err = r.readReasons(ctx, q); err != nil {
			return nil, err
		}
	}
	a := &schemas.DeadResponse{V: schemas.Version, Letters: []schemas.DeadEntry{}}
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		a.Counts = append(a.Counts, schemas.DeadCount{Reason: reason, Count: counts[reason]})
	}
	return a, nil
}

// countReasons has the server count the letters of one reason, or of each that is known. complete
// says that there are no others; as many of another version may be left out as letters came
// meanwhile.
func (r *Reader) countReasons(
	ctx context.Context, q *schemas.DeadRequest,
) (counts map[string]int64, complete bool) {
	reasons := r.Reasons
	if q.Reason != "" {
		reasons = []string{q.Reason}
	}
	all, err := r.Conn.CountDirect(ctx, r.Namespace.StreamDead(), r.filter(q))
	if err != nil {
		return nil, false
	}
	sum := uint64(0)
	counts = map[string]int64{}
	for _, reason := range reasons {
		n, err := r.Conn.CountDirect(ctx, r.Namespace.StreamDead(), r.Namespace.Dead(reason)+".>")
		if err != nil {
			return nil, false
		}
		if n > 0 {
			counts[reason] = int64(n)
			sum += n
		}
	}
	return counts, sum >= all
}

// readReasons counts by reading the subjects.
func (r *Reader) readReasons(
	ctx context.Context, q *schemas.DeadRequest,
) (map[string]int64, error) {
	counts := map[string]int64{}
	options := natsconn.ReadOptions{
		FilterSubjects: []string{r.filter(q)}, StartSeq: FirstAfter(q.After), HeadersOnly: true,
	}
	prefix := r.Namespace.Dead("")
	err := r.Conn.Scan(ctx, r.Namespace.StreamDead(), options, func(m natsconn.Stored) error {
		reason, _, _ := strings.Cut(strings.TrimPrefix(m.Subject, prefix), ".")
		counts[reason]++
		return nil
	})
	return counts, err
}
