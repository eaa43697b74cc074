package activity

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
)

// untilRefused returns a context that ends with the [*natsconn.RefusedError] when the server does
// not let this user do what a worker of its lists must: pull, acknowledge, report and heartbeat.
// The server says so of no call in particular. A worker that pulled and could not report would do
// its work again and again. What it can do without may come back: the next connection may have
// other rights, and is told anew of those that it lacks, after the word that it is there.
func (s *term) untilRefused(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	remove := s.conn.OnRefused(func(e *natsconn.RefusedError) {
		if list, ok := s.needs(e); ok {
			cancel(&refusedError{list: list, RefusedError: e})
		}
		if s.silenced(e) {
			s.closed.Store(true)
		}
	})
	forget := s.conn.OnReconnect(func() { s.closed.Store(false) })
	return ctx, func() {
		remove()
		forget()
		cancel(nil)
	}
}

// unlessCut joins to err the refusal, or the end of the connection, that ended ctx, if one did.
func unlessCut(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if refused, ok := errors.AsType[*refusedError](cause); ok {
		return errors.Join(refused, err)
	}
	if errors.Is(cause, natsconn.ErrClosed) {
		return errors.Join(fmt.Errorf("activity worker: connection: %w", cause), err)
	}
	return err
}

// needs tells whether a refused subject is one that the worker cannot do without, and of which
// list. The right to open a list is not: a list that exists needs nobody to open it. What
// activities publish on this connection, wherever workflows have them, is none.
func (s *term) needs(e *natsconn.RefusedError) (list string, ok bool) {
	if e.Subscribe {
		return "", e.Subject == s.inbox
	}
	in := strings.TrimSuffix(s.ns.AllActOutcomes(""), "*.*.act.")
	outcome := strings.TrimSuffix(s.ns.AllOutcomesOf(""), "*.*.")
	beat := strings.TrimSuffix(s.ns.AllBeatsOf(""), "*.*.")
	if strings.HasSuffix(e.Subject, "."+subject.ConsumerHigh) ||
		strings.HasSuffix(e.Subject, "."+subject.ConsumerLow) {
		return "", false // it may take ordinary tasks only; the puller says so in the log
	}
	for _, list := range s.opts.Lists {
		switch stream := s.ns.StreamTasks(list); {
		case strings.HasPrefix(e.Subject, in) && strings.HasSuffix(e.Subject, ".act."+list),
			strings.HasPrefix(e.Subject, outcome) && strings.HasSuffix(e.Subject, "."+list),
			strings.HasPrefix(e.Subject, beat) && strings.HasSuffix(e.Subject, "."+list),
			s.conn.OfServer(e.Subject) && strings.Contains(e.Subject+".", "."+stream+"."):
			return list, true
		}
	}
	return "", false
}

// silenced tells whether a refusal keeps the worker from being asked for what it was offered, or
// from answering.
func (s *term) silenced(e *natsconn.RefusedError) bool {
	if e.Subscribe {
		return e.Subject == s.ns.Control(s.opts.Identity)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, answer := s.answers[inboxOf(e.Subject)]
	return answer
}

// respond answers an owner or an operator. It notes where, so that a refusal of the answer is told
// from those of what activities publish.
func (s *term) respond(m natsconn.Msg, body []byte) error {
	to := inboxOf(m.Reply)
	s.mu.Lock()
	if _, known := s.answers[to]; !known {
		if s.answers == nil || len(s.answers) >= mostAnswers {
			s.answers = make(map[string]struct{})
		}
		s.answers[strings.Clone(to)] = struct{}{}
	}
	s.mu.Unlock()
	return m.Respond(nil, body)
}

// mostAnswers bounds the inboxes that are known: each owner has one for a partition.
const mostAnswers = 1024

// inboxOf is a reply subject without its last token, which tells one question from another.
func inboxOf(reply string) string { return reply[:strings.LastIndexByte(reply, '.')+1] }

// refusedError says which list the refusal is about.
type refusedError struct {
	list string
	*natsconn.RefusedError
}

func (e *refusedError) Error() string {
	of := ""
	if e.list != "" {
		of = fmt.Sprintf(" list %s:", e.list)
	}
	return fmt.Sprintf("activity worker:%s %v: %s", of, e.RefusedError, e.Hint())
}

func (e *refusedError) Unwrap() error { return e.RefusedError }
