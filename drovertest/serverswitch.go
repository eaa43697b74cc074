package drovertest

import (
	"errors"
	"net"
)

// provider gives connections that use no socket.
type provider interface{ InProcessConn() (net.Conn, error) }

var errShut = errors.New("the server is down")

// serverSwitch is the provider of every connection of an Env. The server that it leads to changes
// with each restart; while there is none, it is shut or a stand-in answers.
type serverSwitch struct {
	turn     turn
	provider provider   // nil while it is shut
	conns    []net.Conn // that were made since the last cut
}

func newServerSwitch() *serverSwitch { return &serverSwitch{turn: make(turn, 1)} }

// open lets clients to p; nil shuts it. Connections that exist stay.
func (d *serverSwitch) open(p provider) {
	d.turn.lock()
	defer d.turn.unlock()
	d.provider = p
}

// InProcessConn implements nats.InProcessConnProvider.
func (d *serverSwitch) InProcessConn() (net.Conn, error) {
	d.turn.lock()
	defer d.turn.unlock()
	if d.provider == nil {
		return nil, errShut
	}
	c, err := d.provider.InProcessConn()
	if err == nil {
		d.conns = append(d.conns, c)
	}
	return c, err
}

// cut closes all connections that were made through it. Who connects again comes to whom it
// leads to.
func (d *serverSwitch) cut() {
	d.turn.lock()
	defer d.turn.unlock()
	for _, c := range d.conns {
		_ = c.Close() // it may be closed already
	}
	d.conns = nil
}

// turn is a lock that may be held while virtual time passes. It is a channel: who waits for a mutex
// stops the clock.
type turn chan struct{}

func (t turn) lock()   { t <- struct{}{} }
func (t turn) unlock() { <-t }
