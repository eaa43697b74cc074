package post

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// erasedHead begins the server's answer to a deletion, and erasedGood follows it when the message is deleted.
var (
	erasedHead = []byte(`{"type":"io.nats.jetstream.api.v1.stream_msg_delete_response",`)
	erasedGood = []byte(`"success":true}`)
)

// Delete removes a message by its sequence, without overwriting its bytes, and returns at once; done gets the outcome as that
// of Send does, without a sequence: nil, [ErrNotFound] for a message that was gone, or an error after which it may still be
// there. Like a message it is sent once: behind a reconnect the number may be that of another message, so that is left to the
// caller. The outbox must not group.
//
// A [Conn.DeleteMsg] for each costs a goroutine and a timer, and waits for its answer; a thousand of these share one
// subscription and one sweeper.
func (b *Outbox) Delete(stream string, seq uint64, done func(error)) {
	if err := checkName("stream", stream); err != nil || b.group.most > 0 {
		if err == nil {
			err = fmt.Errorf("%w: an outbox that groups messages cannot delete one: make another", ErrInvalid)
		}
		go done(err)
		return
	}
	body := append(strconv.AppendUint(append(make([]byte, 0, 48), `{"seq":`...), seq, 10), `,"no_erase":true}`...)
	b.Send(b.conn.api+".STREAM.MSG.DELETE."+stream, nil, body, func(a Ack) { done(a.Err) })
}

// parseErased reads the answer to a deletion; ok is false if it is none.
func parseErased(body []byte) (a Ack, ok bool) {
	rest, ok := bytes.CutPrefix(body, erasedHead)
	if !ok || bytes.Equal(rest, erasedGood) {
		return Ack{}, ok
	}
	var full struct {
		answer
		Success bool `json:"success"`
	}
	if err := json.Unmarshal(body, &full); err != nil {
		return Ack{Err: fmt.Errorf("%w: unreadable answer to a deletion: %w", ErrTimeout, err)}, true
	}
	switch fail := full.failure(); {
	case fail != nil:
		return Ack{Err: fail.asError()}, true
	case !full.Success:
		return Ack{Err: fmt.Errorf("%w: the server does not say that the message is deleted", ErrTimeout)}, true
	}
	return Ack{}, true
}
