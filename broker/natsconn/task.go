package natsconn

import (
	"cmp"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// Task is one delivery of a message of a work queue. Acknowledgements are sent and not confirmed:
// they are hints, any holder's is accepted by the server, and nothing may be concluded from them.
type Task struct {
	Msg
	Seq       uint64    // sequence in the stream, the same for every delivery
	Delivered int       // 1 at the first delivery
	Time      time.Time // when it was stored

	slot *slot
}

// Bare tells whether the server has kept the body back, because the consumer is to deliver headers
// alone.
func (t Task) Bare() bool {
	return len(t.Data) == 0 && cmp.Or(t.Header.Get(nats.MsgSize), "0") != "0"
}

// slot is a task's share of Max, given back once.
type slot struct {
	puller   *Puller
	released atomic.Bool
}

// Release gives the task's slot back, so that another task can be pulled. It does not acknowledge.
// Calling it again does nothing.
func (t Task) Release() {
	if t.slot != nil && t.slot.released.CompareAndSwap(false, true) {
		t.slot.puller.release()
	}
}

// Ack removes the task from the queue.
func (t Task) Ack() error { return t.answer("+ACK") }

// InProgress extends the lease by the consumer's AckWait.
func (t Task) InProgress() error { return t.answer("+WPI") }

// Nak gives the task back, to be delivered again after delay; 0 = at once.
func (t Task) Nak(delay time.Duration) error {
	if delay <= 0 {
		return t.answer("-NAK")
	}
	return t.answer(`-NAK {"delay":` + strconv.FormatInt(int64(delay), 10) + `}`)
}

// Term removes the task from the queue as one that cannot be done.
func (t Task) Term() error { return t.answer("+TERM") }

func (t Task) answer(text string) error {
	if t.conn == nil {
		return fmt.Errorf("%w: %s of a task that was not pulled", ErrInvalid, text)
	}
	return t.conn.Publish(t.Reply, nil, []byte(text))
}
