package activity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/schemas"
)

const (
	openPatience   = 5 * time.Second
	firstOpenRetry = 100 * time.Millisecond
	tellOpenRetry  = 3 * time.Second // from then on somebody may have misspelled the namespace
	lastOpenRetry  = 10 * time.Second
)

// once keeps a signal for whoever takes it next.
func once(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// open asks the broker to make a list's stream and consumers, at the start, after each reconnect, and when the puller says again that
// one of them seems to be gone, until ctx ends. The worker pulls meanwhile: if they exist it works without a broker that answers.
func (s *spell) open(ctx context.Context, list string, again chan struct{}) {
	defer s.conn.OnReconnect(func() { once(again) })()
	for {
		s.openUntilDone(ctx, list, again)
		select {
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

func (s *spell) openUntilDone(ctx context.Context, list string, again chan struct{}) {
	told := false
	for wait := firstOpenRetry; ctx.Err() == nil; wait = min(2*wait, lastOpenRetry) {
		select {
		case <-again: // what was said before this try is answered by it
		default:
		}
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
			log.Warnf("nobody opens the task list: is there a server for the namespace %s? trying again", s.ns)
		default:
			log.Debug("nobody opens the task list yet; trying again")
		}
		pause(ctx, nil, wait)
	}
}

func (s *spell) openOnce(ctx context.Context, list string) error {
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
