package activity

import (
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// returnPatience is how long a worker that stops waits until the inbox has what it says of a task
// before it hands the message back.
const returnPatience = time.Second

// returnReport is the report that a task is given back.
func (s *term) returnReport(d *delivery) (body []byte, ok bool) {
	s.mu.Lock() // for the token
	r := &schemas.Report{Kind: schemas.ReportReturned, Token: d.token}
	s.mu.Unlock()
	s.origin(r, d)
	body, err := schemas.Marshal(r)
	if err != nil {
		d.bareLog().WithField("err", err).Error("it cannot be said that a task is given back")
		return nil, false
	}
	return body, true
}

// sayReturned tells the owner of the workflow that this worker stops in the midst of a task that it
// has pulled, so that it is not taken for lost. If the owner does not hear of it, it is.
func (s *term) sayReturned(d *delivery) {
	s.mu.Lock()
	// else nothing of it has begun, and whoever handles it is still setting what is looked at here
	taken := d.taken != ""
	s.mu.Unlock()
	if !taken {
		return
	}
	body, ok := s.returnReport(d)
	if !ok {
		return
	}
	stored := make(chan struct{})
	s.outbox.Send(d.task.Report, nil, body, func(natsconn.Ack) { close(stored) })
	waited(stored, returnPatience)
}
