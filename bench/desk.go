package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

// hub is the part of LC in the server's process: it says what a broker says, in the same order over the same kinds of connections,
// and knows of a workflow only which message comes next.
type hub struct {
	s                    *script
	commits, api         *post.Conn
	desks                []*desk
	fail                 context.CancelCauseFunc // with the first error
	start, result        reel                    // answers
	decide, record, task reel
	outcome              reel // answers
}

// desk is a partition: its workflows, and the pipeline of records into its stream.
type desk struct {
	h       *hub
	n       int
	history *post.Outbox
	replies string // prefix of the subjects for answers of the worker

	mu    sync.Mutex
	last  uint64 // sequence of the record that was sent last
	talks map[string]*talk
	asked map[uint64]*talk // by the number of the question
	next  uint64
}

// talk is a workflow.
type talk struct {
	number                 string
	step                   int    // records that are stored
	sequence               uint64 // of the last of them
	start, outcome, result string // where answers go; empty when none is due
}

const (
	// groupRecords is how many records one atomic batch has at most, as in the broker.
	groupRecords = 256
	// deciderQueue and apiQueue are what those of W1 form.
	deciderQueue = "deciders"
	apiQueue     = "q"
	talkType     = "bench"
)

// stickyName is the worker's own name, by which it gets the tasks of the runs that it decides: as long as that of W1's worker.
var stickyName = strings.Repeat("W", numberSize)

// openHub makes the streams and buckets of a namespace and listens. fail is called when the conversation breaks off.
func openHub(ctx context.Context, server *embedded.Server, s *script, fail context.CancelCauseFunc) (*hub, error) {
	h := &hub{s: s, fail: fail}
	h.start.all, h.result.all, h.outcome.all = s.Answered[askStart], s.Answered[askResult], s.Answered[askOutcome]
	h.decide.all, h.record.all, h.task.all = s.Asked[askDecide], s.Asked[askRecord], s.Asked[askTask]
	for _, c := range []struct {
		name string
		conn **post.Conn
	}{{"commits", &h.commits}, {"api", &h.api}} {
		conn, err := post.Dial(ctx, post.Options{InProcess: server.Conn(), Name: "conversation " + c.name})
		if err != nil {
			return h, err
		}
		*c.conn = conn
	}
	_, err := topology.Ensure(ctx, h.commits, topology.Options{
		Namespace: string(namespace), Partitions: s.Partitions, Memory: server.Memory(), Synced: server.Profile() != embedded.ProfileDev,
	})
	if err != nil {
		return h, err
	}
	for n := range s.Partitions {
		if err := h.openDesk(n, server); err != nil {
			return h, err
		}
	}
	err = errors.Join(h.hear(h.api, namespace.API("start"), apiQueue, h.started), h.hear(h.api, namespace.API("result"), apiQueue, h.resultAsked))
	if err != nil {
		return h, err
	}
	return h, errors.Join(h.api.Flush(ctx), h.commits.Flush(ctx)) // whoever asks from now on is heard
}

func (h *hub) openDesk(n int, server *embedded.Server) (err error) {
	d := &desk{h: h, n: n, talks: map[string]*talk{}, asked: map[uint64]*talk{}}
	d.replies = h.commits.NATS().NewInbox() + "."
	options := post.OutboxOptions{}
	if server.Stage(namespace.StreamHistory(n)) == nil {
		options.Group = groupRecords
	}
	if d.history, err = h.commits.NewOutbox(options); err != nil {
		return err
	}
	h.desks = append(h.desks, d)
	return errors.Join(
		h.hear(h.commits, d.replies+">", "", func(m post.Msg) error { return d.decided(m) }),
		h.hear(h.commits, namespace.AllBeats(n), "", func(m post.Msg) error { return d.done(m) }),
	)
}

// hear calls what takes a message; an error ends the conversation.
func (h *hub) hear(c *post.Conn, subj, queue string, take func(post.Msg) error) error {
	_, err := c.Subscribe(subj, queue, func(m post.Msg) {
		if err := take(m); err != nil {
			h.fail(fmt.Errorf("%s: %w", m.Subject, err))
		}
	})
	return err
}

// close ends the connections, and what was opened on them.
func (h *hub) close() {
	for _, c := range []*post.Conn{h.api, h.commits} {
		if c != nil {
			c.Close()
		}
	}
}

// deskOf is the partition of a workflow.
func (h *hub) deskOf(number string) (*desk, error) {
	n, err := deskNumber(number, len(h.desks))
	if err != nil {
		return nil, err
	}
	return h.desks[n], nil
}

// deskNumber is the partition of a workflow: they take turns.
func deskNumber(number string, desks int) (int, error) {
	_, digits, _ := strings.Cut(number, "-")
	i, err := strconv.Atoi(digits)
	if err != nil || i < 0 {
		return 0, fmt.Errorf("%q is no number of a workflow", number)
	}
	return i % desks, nil
}

// at finds the desk of the workflow that a message names, and holds its lock while do runs.
func (h *hub) at(m post.Msg, do func(d *desk, number string) error) error {
	number, err := readNumber(m.Data)
	if err != nil {
		return err
	}
	d, err := h.deskOf(number)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return do(d, number)
}

func (h *hub) started(m post.Msg) error {
	return h.at(m, func(d *desk, number string) error {
		t := &talk{number: number, start: m.Reply}
		d.talks[number] = t
		return d.decide(t)
	})
}

func (h *hub) resultAsked(m post.Msg) error {
	return h.at(m, func(d *desk, number string) error {
		t, err := d.talk(number)
		if err != nil {
			return err
		}
		t.result = m.Reply
		return d.end(t)
	})
}

// talk finds a workflow. The caller holds mu, as for all that follows.
func (d *desk) talk(number string) (*talk, error) {
	t := d.talks[number]
	if t == nil {
		return nil, fmt.Errorf("nobody has started workflow %q", number)
	}
	return t, nil
}

// decide asks for the first decision: the worker by its name, as W1 does mostly, or whoever listens, in JSON.
func (d *desk) decide(t *talk) error {
	d.next++
	d.asked[d.next] = t
	body, subj := d.h.decide.turn(), namespace.DecideSticky(talkType, stickyName)
	if schemas.IsJSON(body) {
		subj = namespace.Decide(talkType)
	}
	return d.h.commits.PublishReply(subj, d.replies+strconv.FormatUint(d.next, 36), nil, body)
}

// decided takes the first decision.
func (d *desk) decided(m post.Msg) error {
	n, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, d.replies), 36, 64)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.asked[n]
	if t == nil || m.NobodyListens() {
		return errors.New("no decider has answered")
	}
	delete(d.asked, n)
	d.keep(t)
	return nil
}

// keep sends the record of what has happened and was decided.
func (d *desk) keep(t *talk) {
	i, body := d.h.record.place()
	head := post.Header{statusHeader: {d.h.s.Statuses[i]}}
	post.ExpectLastSeq(head, d.last)
	if t.step == 0 {
		post.ExpectNone(head, namespace.HistoryOfWorkflow(d.n, t.number))
	} else {
		post.ExpectLastSubjectSeq(head, t.sequence)
	}
	d.last++
	want := d.last
	d.history.Send(namespace.History(d.n, t.number, t.number), head, body, func(a post.Ack) {
		if err := d.stored(t, want, a); err != nil {
			d.h.fail(err)
		}
	})
}

// stored answers who has waited for the record, and goes on.
func (d *desk) stored(t *talk, want uint64, a post.Ack) error {
	switch {
	case a.Err != nil:
		return fmt.Errorf("a record of partition %d: %w", d.n, a.Err)
	case a.Seq != want:
		return fmt.Errorf("a record of partition %d is stored at %d, want %d: records are not stored in the order in which they were sent", d.n, a.Seq, want)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	t.sequence = a.Seq
	t.step++
	to, answer := t.start, &d.h.start
	if t.outcome != "" {
		to, answer = t.outcome, &d.h.outcome
	}
	t.start, t.outcome = "", ""
	if err := d.h.commits.Publish(to, nil, answer.turn()); err != nil {
		return err
	}
	if t.step == steps {
		return d.end(t)
	}
	d.next++
	to, body := namespace.DecideSticky(talkType, stickyName), numbered(t.number, d.h.task.turn())
	return d.h.commits.PublishReply(to, d.replies+"o."+strconv.FormatUint(d.next, 36), marked, body)
}

// done takes an outcome with the decision behind it.
func (d *desk) done(m post.Msg) error {
	_, number, _, err := subject.ParseBeat(m.Subject)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	t, err := d.talk(number)
	if err != nil {
		return err
	}
	t.outcome = m.Reply
	d.keep(t)
	return nil
}

// end answers who waits for the result, if all is over and somebody does.
func (d *desk) end(t *talk) error {
	if t.step < steps || t.result == "" {
		return nil
	}
	delete(d.talks, t.number)
	return d.h.commits.Publish(t.result, nil, d.h.result.turn())
}
