package natsconn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// scanCheck is how often a scan that gets nothing asks whether there is anything left. Only a
// message that was deleted under its feet makes it wait so long.
const scanCheck = time.Second

// fewAsked is how many messages between two given sequences are asked for one by one. A consumer
// would be sent megabytes of what lags them before it is stopped.
const fewAsked = 16

// Scan reads a stream from o.StartSeq to o.EndSeq, or the end that the leader has at the call, in
// order, and returns. It is prompt when there is nothing to read. fn is called for one message at a
// time; its error ends the scan and is returned. With LastPerSubject fn gets the last message of
// each subject; one that changes meanwhile may come twice.
func (c *Conn) Scan(
	ctx context.Context, stream string, o ReadOptions, fn func(Stored) error,
) error {
	s := &scan{
		fn: fn, latest: o.LastPerSubject, finished: make(chan struct{}),
		hint: make(chan struct{}, 1),
	}
	r, err := c.newReader(ctx, stream, o, s.take)
	if err != nil {
		return err
	}
	if s.end, err = c.StreamLastSeq(ctx, stream); err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	if o.EndSeq > 0 {
		s.end = min(s.end, o.EndSeq)
		if len(o.FilterSubjects) == 0 && s.end < o.StartSeq+fewAsked {
			return c.scanFew(ctx, stream, o, s)
		}
	}
	s.bound = s.end
	if s.latest {
		s.bound = math.MaxUint64
	}
	if rest, err := c.anyBetween(ctx, stream, o.FilterSubjects, o.StartSeq, s.bound); err != nil ||
		!rest {
		return err
	}
	s.reached.Store(r.last)
	if err := r.begin(ctx); err != nil {
		return err
	}
	defer func() { r.Close(); <-r.Done() }()
	return s.wait(ctx, c, r)
}

// scanFew asks the leader for each message up to the end.
func (c *Conn) scanFew(ctx context.Context, stream string, o ReadOptions, s *scan) error {
	for seq := o.StartSeq; seq <= s.end; {
		m, err := c.NextBySubject(ctx, stream, ">", seq)
		switch {
		case errors.Is(err, ErrNotFound):
			return nil
		case err != nil:
			return fmt.Errorf("scan: %w", err)
		case m.Seq > s.end:
			return nil
		}
		if o.HeadersOnly {
			m.Data = nil
		}
		if err := s.fn(*m); err != nil {
			return err
		}
		seq = m.Seq + 1
	}
	return nil
}

// scan is the state of one Scan.
type scan struct {
	fn     func(Stored) error
	latest bool   // last message per subject
	end    uint64 // the last sequence at the start
	// the last sequence that must not be missed: every last message counts, however new
	bound   uint64
	reached atomic.Uint64

	hint     chan struct{} // the consumer says that nothing is left
	once     sync.Once
	finished chan struct{}
	err      error
}

func (s *scan) finish(err error) {
	s.once.Do(func() {
		s.err = err
		close(s.finished)
	})
}

// take is called for one message at a time. A listing of last messages does not stop at the end:
// the last one of a subject may have moved after it.
func (s *scan) take(m Stored, pending uint64) {
	select {
	case <-s.finished:
		return
	default:
	}
	if m.Seq <= s.end || s.latest {
		if err := s.fn(m); err != nil {
			s.finish(err)
			return
		}
	}
	s.reached.Store(m.Seq)
	if m.Seq >= s.end && !s.latest {
		s.finish(nil)
	}
	if pending == 0 {
		select {
		case s.hint <- struct{}{}:
		default:
		}
	}
}

// wait returns when the end is reached. The consumer's own word is not enough for that, because its
// replica may lag and its count of what is left is not exact beside deletions: the leader is asked.
func (s *scan) wait(ctx context.Context, c *Conn, r *Reader) error {
	tick := time.NewTicker(scanCheck)
	defer tick.Stop()
	caught := r.CaughtUp()
	for {
		select {
		case <-s.finished:
			return s.err
		case <-ctx.Done():
			return fmt.Errorf("scan stream %s: %w", r.stream, ctx.Err())
		case <-r.Done():
			return fmt.Errorf("scan stream %s: %w", r.stream, errors.Join(ErrClosed, r.Err()))
		case <-caught:
			caught = nil
		case <-s.hint:
		case <-tick.C:
		}
		rest, err := c.anyBetween(ctx, r.stream, r.opts.FilterSubjects, s.reached.Load()+1, s.bound)
		if err != nil {
			return err
		}
		if !rest {
			s.finish(nil)
		}
	}
}

// anyBetween asks the leader whether a message from first to last matches one of the filters.
func (c *Conn) anyBetween(
	ctx context.Context, stream string, filters []string, first, last uint64,
) (bool, error) {
	if last == 0 || first > last {
		return false, nil
	}
	if len(filters) == 0 {
		filters = []string{">"}
	}
	for _, f := range filters {
		m, err := c.NextBySubject(ctx, stream, f, first)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("scan: %w", err)
		}
		if m.Seq <= last {
			return true, nil
		}
	}
	return false, nil
}
