package natsconn

import (
	"bytes"
	"errors"
	"time"
)

// oversized is the last word of a server to who has sent a message larger than it takes. A reload
// of its configuration may have made that smaller, of which it tells nobody who is connected.
var oversized = []byte("-ERR 'Maximum Payload Violation'\r\n")

// oversizedLook is how long the end of the connection is waited for after it. It comes at once.
const oversizedLook = 200 * time.Millisecond

var errOversized = errors.New(
	"the server has closed it: it takes smaller messages than it had said (max_payload)")

// Read keeps that word from the library, which would not connect again: after another connection it
// knows what the server takes. The same bytes may end a message, as any others: then more comes, or
// nothing, and they are passed on. With TLS they are not seen here, and the library closes the
// connection.
func (g *coalescer) Read(b []byte) (int, error) {
	if len(g.ahead) > 0 {
		n := copy(b, g.ahead)
		g.ahead = g.ahead[n:]
		return n, nil
	}
	n, err := g.Conn.Read(b)
	if err != nil || !bytes.HasSuffix(b[:n], oversized) {
		return n, err
	}
	next := make([]byte, 1)
	// a broken connection refuses the read itself
	_ = g.Conn.SetReadDeadline(time.Now().Add(oversizedLook))
	m, err := g.Conn.Read(next)
	_ = g.Conn.SetReadDeadline(time.Time{})
	switch slow, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); {
	case m > 0:
		g.ahead = next
		return n, nil
	case ok && slow.Timeout():
		return n, nil
	case n > len(oversized):
		return n - len(oversized), nil // the next read meets the end
	default:
		return 0, errOversized
	}
}
