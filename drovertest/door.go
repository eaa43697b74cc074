package drovertest

import (
	"errors"
	"net"
)

// provider gives connections that use no socket.
type provider interface{ InProcessConn() (net.Conn, error) }

var errShut = errors.New("the server is down")

// door is the provider of every connection of an Env. The server that it leads to changes with each
// restart; while there is none, the door is shut or a porter answers.
type door struct {
	turn     turn
	provider provider   // nil while it is shut
	conns    []net.Conn // that were made since the last cut
}

func newDoor() *door { return &door{turn: make(turn, 1)} }

// open lets clients to p; nil shuts the door. Connections that exist stay.
func (d *door) open(p provider) {
	d.turn.lock()
	defer d.turn.unlock()
	d.provider = p
}

// InProcessConn implements nats.InProcessConnProvider.
func (d *door) InProcessConn() (net.Conn, error) {
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

// cut closes all connections that were made through the door. Who connects again comes to whom it
// leads to.
func (d *door) cut() {
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
