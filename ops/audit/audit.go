// Package audit compares what the runs of a namespace wait for with what is in its streams, repairs
// what can be done again without harm, and tells what only people can mend.
//
// An [Auditor] is used in two ways. The command line calls [Auditor.Pass] once; the master of a
// namespace calls [Auditor.Run], which looks again and again and logs what is new. Both may be at
// work at once, and on several machines: nothing that an audit does depends on being alone.
//
// What is expected is told by the owners of the partitions (the API verb "audit"); what is there is
// read from the streams. Invariants:
//
//   - Everything suspicious is looked at twice, [Options.Confirm] apart, and counts only if it is
//     there both times. A task that is gone counts only if the owner has read the inbox up to where
//     it stood after the first look: the report that explains it was stored before the task was
//     acknowledged.
//   - A repair is one of two things. Repeating the open effects of a run, which its owner does (the
//     API verb "repair"), and which those who receive one twice recognise. Or removing, by its
//     sequence, a task or an alarm of which the owner has said twice that no run waits for it.
//   - Histories are never written, and nothing is removed from an inbox.
//   - Owners are asked for few runs at a time and at a bounded rate, and keep none of those they
//     read for it.
package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// ErrInvalidOptions reports options that leave their bounds. The text names the field and the way
// out.
var ErrInvalidOptions = errors.New("invalid options")

// Options of [New].
type Options struct {
	// Conn reads the streams and asks the owners. Required.
	Conn *natsconn.Conn
	// Namespace that is looked at, and how many partitions it has. Required.
	Namespace  subject.Namespace
	Partitions int
	// Claims of the namespace, to see who holds what; nothing is taken. Required.
	Claims *claims.Claims
	// ReportOnly leaves everything as it is. Defaults to repairing.
	ReportOnly bool
	// Identity is told to the owners, for their logs. Defaults to "audit".
	Identity string
	// Confirm is the time between the two looks, at least 100 ms. Defaults to 2 s.
	Confirm time.Duration
	// Overdue is how late an alarm may be, Waiting how long a message or a task may wait before it
	// is told of, and Stuck how long a message of a log may wait before that is a fault. Default to
	// 5 s, 10 s and 1 minute.
	Overdue, Waiting, Stuck time.Duration
	// Rate is how many runs the owners are asked for in a second. Defaults to 1,000.
	Rate int
	// MostOfKind bounds the findings of one kind that are reported; others are counted. Defaults to
	// 100.
	MostOfKind int
	// CheapEvery and FullEvery are the pauses between the passes of [Auditor.Run]. Default to 1 and
	// 10 minutes.
	CheapEvery, FullEvery time.Duration
	// Observer is told of each pass of [Auditor.Run], by the goroutine that does it. Its panics are
	// logged. Defaults to none.
	Observer func(*Report)
	// Logger is told of findings, once when they come and once when they are gone. Defaults to
	// none.
	Logger logrus.FieldLogger
}

func (o Options) withDefaults() (Options, error) {
	o.Identity = cmp.Or(o.Identity, "audit")
	o.Confirm = cmp.Or(o.Confirm, 2*time.Second)
	o.Overdue = cmp.Or(o.Overdue, 5*time.Second)
	o.Waiting = cmp.Or(o.Waiting, 10*time.Second)
	o.Stuck = cmp.Or(o.Stuck, time.Minute)
	o.Rate = cmp.Or(o.Rate, 1000)
	o.MostOfKind = cmp.Or(o.MostOfKind, 100)
	o.CheapEvery = cmp.Or(o.CheapEvery, time.Minute)
	o.FullEvery = cmp.Or(o.FullEvery, 10*time.Minute)
	o.Logger = logx.Or(o.Logger)
	bad := func(format string, args ...any) error {
		return fmt.Errorf("audit: %w: %s", ErrInvalidOptions, fmt.Sprintf(format, args...))
	}
	switch {
	case o.Conn == nil:
		return o, bad("Conn is nil: dial the NATS server of the namespace")
	case o.Claims == nil:
		return o, bad("Claims is nil: open those of the namespace")
	case o.Partitions < 1:
		return o, bad("Partitions is %d: want what topology.Lookup reports, at least 1",
			o.Partitions)
	case o.Confirm < 100*time.Millisecond:
		return o, bad("Confirm is %v: use at least 100ms, or 0 for 2s", o.Confirm)
	case o.Overdue < 0 || o.Waiting < 0 || o.Stuck < 0:
		return o, bad(
			"Overdue is %v, Waiting %v and Stuck %v: none may be negative; 0 means the default",
			o.Overdue, o.Waiting, o.Stuck)
	case o.Rate < 1 || o.MostOfKind < 1:
		return o, bad("Rate is %d and MostOfKind %d: use at least 1, or 0 for the default",
			o.Rate, o.MostOfKind)
	case o.CheapEvery < time.Second || o.FullEvery < o.CheapEvery:
		return o, bad(
			"CheapEvery is %v and FullEvery %v: use at least 1s, and no less for FullEvery than for CheapEvery",
			o.CheapEvery, o.FullEvery)
	}
	if err := subject.ValidateNamespace(string(o.Namespace)); err != nil {
		return o, bad("Namespace: %v", err)
	}
	return o, nil
}

// Auditor looks after one namespace. One pass runs at a time.
type Auditor struct {
	o     Options
	ns    subject.Namespace
	known map[string]Finding // what the last passes of Run have found
	// histories is how far those of the partitions have been read.
	histories map[int]*history
}

// New checks the options. It asks nobody.
func New(o Options) (*Auditor, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Auditor{
		o: o, ns: o.Namespace, known: map[string]Finding{}, histories: map[int]*history{},
	}, nil
}

const (
	// An owner may be changing: a question is asked a second time.
	askTries   = 2
	askTimeout = 4 * time.Second
	askPause   = 300 * time.Millisecond
)

// ask asks a verb of the API.
func ask[Answer any](
	ctx context.Context, a *Auditor, verb string, in any, refusal func(*Answer) *schemas.Error,
) (*Answer, error) {
	body, err := schemas.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	for try := 1; ; try++ {
		out, err := askOnce(ctx, a, verb, body, refusal)
		if err == nil || try == askTries || ctx.Err() != nil {
			return out, err
		}
		if err := sleep.For(ctx, askPause); err != nil {
			return nil, err
		}
	}
}

func askOnce[Answer any](
	ctx context.Context, a *Auditor, verb string, body []byte, refusal func(*Answer) *schemas.Error,
) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	m, err := a.o.Conn.Request(ctx, a.ns.API(verb),
		natsconn.Header{schemas.ContentTypeHeader: {schemas.ContentTypeMsgpack}}, body)
	if err != nil {
		return nil, err
	}
	out := new(Answer)
	if err := schemas.Unmarshal(m.Data, out); err != nil {
		return nil, fmt.Errorf("the answer to %s cannot be read: %w", verb, err)
	}
	if e := refusal(out); e != nil {
		return nil, e
	}
	return out, nil
}
