package activity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	openPatience   = 5 * time.Second
	firstOpenRetry = 100 * time.Millisecond
	tellOpenRetry  = 3 * time.Second // from then on somebody may have misspelled the namespace
	lastOpenRetry  = 10 * time.Second
	// A puller finds a consumer that stays away gone every ten seconds: longer apart are two
	// accidents, and closer together one.
	goneForGood = 30 * time.Second
	goneAtOnce  = 5 * time.Second
)

// once keeps a signal for whoever takes it next.
func once(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// opening says why a list is to be opened again: after a reconnect, or because the puller finds a
// consumer of it gone.
type opening struct{ again, gone chan struct{} }

func newOpening() opening {
	return opening{again: make(chan struct{}, 1), gone: make(chan struct{}, 1)}
}

// forget drops what was said before a try, which answers it.
func (o opening) forget() {
	for _, c := range []chan struct{}{o.again, o.gone} {
		select {
		case <-c:
		default:
		}
	}
}

// open asks the broker to make a list's stream and consumers, at the start, after each reconnect,
// and when the puller says again that one of them seems to be gone, until ctx ends. The worker
// pulls meanwhile: if they exist it works without a broker that answers.
func (s *term) open(ctx context.Context, list string, o opening) {
	defer s.conn.OnReconnect(func() { once(o.again) })()
	var mended time.Time // when the list was last opened because it was gone
	told := false
	for gone := false; ; {
		s.openUntilDone(ctx, list, o)
		if gone {
			mended = time.Now()
		}
		select {
		case <-o.again:
			gone = false
		case <-o.gone:
			gone = true
			// It was opened, and is gone as before: the broker makes it elsewhere. Several
			// consumers of it say so at once.
			if since := time.Since(mended); since < goneForGood && since > goneAtOnce && !told {
				told = true
				s.log.WithField("list", list).
					Warn("the broker has opened the task list, and the NATS server at hand has " +
						"none: if this process is connected to another JetStream domain, " +
						"as by a leaf node, name that of the servers by Options.APIPrefix, or " +
						"by jetstream_domain of a NATS context")
			} else if since >= goneForGood {
				told = false
			}
		case <-ctx.Done():
			return
		}
	}
}

func (s *term) openUntilDone(ctx context.Context, list string, o opening) {
	told := false
	for wait := firstOpenRetry; ctx.Err() == nil; wait = min(2*wait, lastOpenRetry) {
		o.forget()
		err := s.openOnce(ctx, list)
		if err == nil {
			return
		}
		log := s.log.WithField("list", list).WithField("err", err)
		_, refused := errors.AsType[*schemas.Error](err)
		switch {
		case refused:
			log.Warn("the broker refuses to open the task list; trying again")
		case !told && wait > tellOpenRetry && ctx.Err() == nil:
			told = true
			log.Warnf(
				"nobody opens the task list: is there a server for the namespace %s? trying again",
				s.ns)
		default:
			log.Debug("nobody opens the task list yet; trying again")
		}
		sleep.For(ctx, wait)
	}
}

func (s *term) openOnce(ctx context.Context, list string) error {
	body, err := schemas.MarshalJSON(&schemas.TaskListRequest{V: schemas.Version, List: list})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	m, err := s.conn.Request(ctx, s.ns.API("tasklist"), nil, body)
	if err != nil {
		return err
	}
	var resp schemas.TaskListResponse
	if err := schemas.Unmarshal(m.Data, &resp); err != nil {
		return fmt.Errorf("answer of the broker: %w", err)
	}
	if resp.Error != nil {
		return resp.Error
	}
	return nil
}
