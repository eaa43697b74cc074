package timers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/subject"
)

// Worker rings alarms. It is made by [New].
type Worker struct {
	conn *post.Conn
	opts Options
	ns   subject.Namespace
	log  logrus.FieldLogger
	now  func() time.Time // the local clock; tests set it wrong
}

// New returns a worker that will speak through conn. Options that are wrong are reported by Run.
func New(conn *post.Conn, opts *Options) *Worker {
	if opts == nil {
		opts = &Options{}
	}
	o := opts.withDefaults()
	return &Worker{
		conn: conn, opts: o, ns: subject.Namespace(o.Namespace), now: time.Now,
		log: o.Logger.WithFields(logrus.Fields{"role": "timers", "node": o.Node}),
	}
}

// Run claims the alarms of every partition and rings those that it gets, until ctx ends. It then gives the claims back
// and returns nil. It returns [ErrInvalidOptions] if it did not begin.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.opts.validate(); err != nil {
		return err
	}
	w.log.Debugf("timer worker begins: %s", w.opts)
	errs := make([]error, w.opts.Partitions)
	var wg sync.WaitGroup
	for p := range w.opts.Partitions {
		wg.Go(func() {
			errs[p] = w.opts.Claims.Hold(ctx, claims.Alarms(p), claims.HoldOptions{}, func(ctx context.Context, l *claims.Lease) error {
				return newSpell(w, p, l).run(ctx)
			})
		})
	}
	wg.Wait()
	for p, err := range errs {
		if err != nil {
			return fmt.Errorf("timer worker: partition %d: %w", p, err)
		}
	}
	return nil
}

// pause waits; it reports false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
