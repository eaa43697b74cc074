package natsconn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// erasedHead begins the server's answer to a deletion, and erasedGood follows it when the message
// is deleted. purgedHead begins that to a purge.
var (
	erasedHead = []byte(`{"type":"io.nats.jetstream.api.v1.stream_msg_delete_response",`)
	erasedGood = []byte(`"success":true}`)
	purgedHead = []byte(`{"type":"io.nats.jetstream.api.v1.stream_purge_response",`)
)

// DeletesAtOnce is how many deletions and purges one caller should have on their way: the server
// keeps one queue of such requests for everybody, and empties it when 10,000 wait.
const DeletesAtOnce = 64

// Delete removes a message by its sequence, without overwriting its bytes, and returns at once;
// done gets the outcome as that of Send does, without a sequence: nil, [ErrNotFound] for a message
// that was gone, or an error after which it may still be there. Like a message it is sent once:
// after a reconnect the number may be that of another message, so that is left to the caller. The
// outbox must not group.
//
// A [Conn.DeleteMsg] for each costs a goroutine and a timer, and waits for its answer; a thousand
// of these share one subscription and one sweeper.
func (b *Outbox) Delete(stream string, seq uint64, done func(error)) {
	body := append(strconv.AppendUint(append(make([]byte, 0, 48), `{"seq":`...), seq, 10),
		`,"no_erase":true}`...)
	b.erase(".STREAM.MSG.DELETE.", stream, body, done)
}

// PurgeBelow removes every message of a stream below a sequence, as Delete removes one. With keep 0
// or 1 nothing lies below, and the server would take 0 for everything: that is [ErrInvalid].
func (b *Outbox) PurgeBelow(stream string, keep uint64, done func(error)) {
	if keep <= 1 {
		go done(fmt.Errorf("%w: purge of stream %s below message %d: nothing lies there",
			ErrInvalid, stream, keep))
		return
	}
	b.erase(".STREAM.PURGE.", stream, append(strconv.AppendUint([]byte(`{"seq":`), keep, 10), '}'),
		done)
}

func (b *Outbox) erase(op, stream string, body []byte, done func(error)) {
	if err := checkName("stream", stream); err != nil || b.group.most > 0 {
		if err == nil {
			err = fmt.Errorf("%w: an outbox that groups messages cannot delete any: make another",
				ErrInvalid)
		}
		go done(err)
		return
	}
	b.Send(b.conn.api+op+stream, nil, body, func(a Ack) { done(a.Err) })
}

// parseErased reads the answer to a deletion or a purge; ok is false if it is none.
func parseErased(body []byte) (a Ack, ok bool) {
	rest, ok := bytes.CutPrefix(body, erasedHead)
	if ok && bytes.Equal(rest, erasedGood) {
		return Ack{}, true
	}
	if !ok && !bytes.HasPrefix(body, purgedHead) {
		return Ack{}, false
	}
	var full struct {
		answer
		Success bool `json:"success"`
	}
	if err := json.Unmarshal(body, &full); err != nil {
		return Ack{Err: fmt.Errorf("%w: unreadable answer to a deletion: %w", ErrTimeout, err)},
			true
	}
	switch fail := full.failure(); {
	case fail != nil:
		return Ack{Err: fail.asError()}, true
	case !full.Success:
		return Ack{
			Err: fmt.Errorf("%w: the server does not say that the message is deleted", ErrTimeout),
		}, true
	}
	return Ack{}, true
}
