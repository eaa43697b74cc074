package activity

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nearby"
	"github.com/droverhq/drover/schemas"
)

const (
	// againDelay is when a task comes back whose outcome or dead letter could not be stored.
	againDelay   = 5 * time.Second
	buryPatience = 30 * time.Second
)

// ending is how a delivery is settled with the server.
type ending int

const (
	acknowledge ending = iota + 1 // the task is done with
	giveBack                      // somebody else shall have it
	terminate                     // nobody can do it
)

// delivery is one task message in hand, and the lease on it.
type delivery struct {
	natsconn.Task
	term    *term
	list    string
	offered bool          // by the owner of the workflow, without a message in the stream
	errand  nearby.Errand // of a decider of this process; nil for most

	// Set by decode and handle, before anything else looks.
	task   *schemas.ActivityTask
	nonce  string
	token  string          // the one outcomes are believed under
	taken  string          // the one it is in hand under; guarded by the mu of its term
	number int             // of the attempt
	late   bool            // its time was over when it came, by the estimate of the server's clock
	begun  bool            // the owner has recorded the start, under nonce
	resume schemas.Payload // details of the last heartbeat of an earlier attempt
	decide nearby.Decide   // of an errand: what follows its success
	// elsewhere: another goroutine ends the delivery. It belongs to the one that handles it.
	elsewhere bool

	giving sync.Mutex // held while the task is given back, before mu

	mu      sync.Mutex
	lease   *time.Timer
	settled bool
}

// log is for the goroutine that handles the delivery. It is made when it is needed: most have
// nothing to say.
func (d *delivery) log() logrus.FieldLogger {
	log := d.bareLog()
	if t := d.task; t != nil {
		log = log.WithFields(
			logrus.Fields{"run": t.Run, "task": t.ActivityID, "type": t.Type, "attempt": d.number})
	}
	return log
}

// bareLog is for any goroutine: it looks at nothing that handling the delivery sets.
func (d *delivery) bareLog() logrus.FieldLogger {
	return d.term.log.WithFields(logrus.Fields{"list": d.list, "seq": d.Seq})
}

// keep extends the lease every interval until the delivery is settled or forgotten.
func (d *delivery) keep(interval time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lease = time.AfterFunc(interval, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.settled {
			return
		}
		if err := d.InProgress(); err != nil {
			d.bareLog().WithField("err", err).Debug("the lease was not extended")
		}
		d.lease.Reset(interval)
	})
}

// settle tells the server what becomes of the task, once; later calls do nothing. It reports
// whether it was the first.
func (d *delivery) settle(how ending, delay time.Duration) bool {
	if !d.forget() {
		return false
	}
	if d.offered {
		d.term.settleOffer(d, how)
		return true
	}
	var err error
	switch how {
	case acknowledge:
		err = d.Ack()
	case giveBack:
		err = d.Nak(delay)
	case terminate:
		err = d.Term()
	}
	if err != nil { // the lease runs out, the task comes back, and the owner says that it is closed
		d.bareLog().WithField("err", err).Debug("the task was not settled with the server")
	}
	return true
}

func (d *delivery) isSettled() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.settled
}

// forget ends the lease without a word to the server. It reports whether the delivery was unsettled
// until now.
func (d *delivery) forget() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lease != nil {
		d.lease.Stop()
	}
	first := !d.settled
	d.settled = true
	return first
}

// giveBack hands the task to another worker at once, because this one stops. When it returns that
// is done, whoever does it: the goroutine that handles the delivery may have begun when the drain
// comes to it, and after the drain nobody may send, count or log.
//
// The owner is told before the message goes back. Who gets it asks, and this worker would be missed
// like one that is lost.
func (d *delivery) giveBack() {
	d.giving.Lock()
	defer d.giving.Unlock()
	if !d.offered && !d.isSettled() {
		d.term.sayReturned(d)
	}
	if d.settle(giveBack, 0) {
		d.term.returned.Add(1)
		d.bareLog().
			Warn("the worker stops before the activity has ended; another worker gets the task")
	}
}

// decode reads the task.
func (d *delivery) decode() error {
	t, err := d.open()
	if err != nil {
		return err
	}
	for _, f := range []struct{ field, value string }{{"type", t.Type}, {"token", t.Token}, {"report", t.Report}} {
		if f.value == "" {
			return fmt.Errorf("%w: %q is missing", schemas.ErrMalformed, f.field)
		}
	}
	for _, f := range []struct{ field, value string }{{"report", t.Report}, {"beat", t.Beat}} {
		if strings.ContainsAny(f.value, " \t\r\n*>") {
			return fmt.Errorf("%w: %q is %q, which is no subject to publish to",
				schemas.ErrMalformed, f.field, f.value)
		}
	}
	d.task, d.token, d.number, d.resume = t, t.Token, t.Attempt, t.HeartbeatDetails
	return nil
}

// open reads the message.
func (d *delivery) open() (t *schemas.ActivityTask, err error) {
	if d.errand != nil {
		t, d.decide, err = d.errand.Open()
		return t, err
	}
	t = &schemas.ActivityTask{}
	return t, schemas.UnmarshalOwned(d.Data, t)
}

// stripped leaves a task on its list whose consumer has kept the body back, as somebody has told it
// to, and has the list opened again, which takes that back. It reports whether this is one.
func (s *term) stripped(d *delivery) bool {
	if d.offered || !d.Bare() {
		return false
	}
	if !s.bare.Swap(true) {
		s.log.WithField("list", d.list).
			Warn("a consumer of the list delivers headers alone (headers_only): its tasks stay " +
				"there, and the list is opened again, which takes that back")
	}
	once(s.openings[d.list].again)
	d.settle(giveBack, againDelay)
	return true
}

// bury parks a task that cannot be decoded and takes it off the list. A worker knows no incarnation
// of the list's stream, so the letter is named by the task's content.
func (s *term) bury(ctx context.Context, d *delivery, cause error) {
	if d.offered { // its owner puts it on the list, where it is buried
		d.forget()
		return
	}
	d.log().WithField("err", cause).Warn("a task that cannot be decoded goes to the dead letters")
	ctx, cancel := context.WithTimeout(ctx, buryPatience)
	defer cancel()
	place := dead.Place{
		Partition: "tasks", Stream: d.list, Incarnation: dead.Digest(d.Subject, d.Data),
		Sequence: d.Seq,
	}
	err := dead.Bury(ctx, s.conn, s.ns, place, schemas.DeadLetter{
		Reason: dead.ReasonUndecodableTask, Details: cause.Error(), Subject: d.Subject,
		Time: schemas.At(d.Time), Body: d.Data,
	})
	if err != nil {
		d.log().WithField("err", err).
			Error("the dead letter could not be written; the task stays on its list")
		d.settle(giveBack, againDelay)
		return
	}
	d.settle(terminate, 0)
}

// permanent tells whether a publish was refused for a reason that trying again does not change.
func permanent(err error) bool {
	return errors.Is(err, natsconn.ErrTooLarge) || errors.Is(err, natsconn.ErrInvalid) ||
		errors.Is(err, natsconn.ErrClosed) || errors.Is(err, natsconn.ErrPermission)
}
