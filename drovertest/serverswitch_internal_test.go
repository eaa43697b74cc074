package drovertest

import (
	"errors"
	"io"
	"net"
	"testing"
)

// pipes gives connections whose other ends it keeps.
type pipes struct{ ends []net.Conn }

func (p *pipes) InProcessConn() (net.Conn, error) {
	theirs, ours := net.Pipe()
	p.ends = append(p.ends, ours)
	return theirs, nil
}

// A cut ends what is connected, and nobody who connects after it. A server must have no client when
// it ends: it would deliver to those that it has sent away, and virtual time would stand still.
func TestCut(t *testing.T) {
	d, p := newServerSwitch(), new(pipes)
	connect := func() net.Conn {
		c, err := d.InProcessConn()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	d.open(p)
	connect()
	connect()
	d.cut()
	for _, end := range p.ends {
		if _, err := end.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the server reads %v, want the end", err)
		}
	}
	c := connect()
	written := make(chan error, 1)
	go func() {
		_, err := p.ends[2].Write([]byte("x"))
		written <- err
	}()
	b := make([]byte, 1)
	if _, err := c.Read(b); err != nil || string(b) != "x" {
		t.Errorf("who connects after the cut reads %q, %v", b, err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	d.open(nil)
	d.cut()
	if _, err := d.InProcessConn(); !errors.Is(err, errShut) {
		t.Errorf("a shut door: %v", err)
	}
}
