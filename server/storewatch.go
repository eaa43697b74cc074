package server

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/diskspace"
)

const (
	// brokenEvery is how often a server looks whether its store can be written again only after a
	// start. It looks at every stream.
	brokenEvery = 3 * time.Second
	// brokenStop bounds the stop of a server whose store takes nothing any more: what its roles
	// would say at the end cannot be stored.
	brokenStop = 5 * time.Second
)

var errUnwritten = errors.New("the store cannot be written")

// watchStore ends when the store of this node's own server can be written again only after a start:
// then the process ends, and whoever watches over it starts it again. A disk that has become full
// is waited for, and those who ask are told of it; one that is full as the server starts is not.
func (n *node) watchStore(ctx context.Context) error {
	tick := time.NewTicker(brokenEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := n.server.Broken(); err != nil {
			return err
		}
		if n.serving.Load() {
			continue
		}
		if err := n.server.Writable(); err != nil && !errors.Is(err, embedded.ErrStoreGone) {
			return n.explainDisk(fmt.Errorf("%w: %w", errUnwritten, err))
		}
	}
}

// keeps tells whether this node has a store of its own, which may break.
func (n *node) keeps() bool { return n.server != nil && !n.server.Memory() }

// unwritable tells whether nothing that the roles say at their end would be stored.
func (n *node) unwritable() bool {
	return n.keeps() && (n.server.Broken() != nil || n.server.Writable() != nil)
}

// diskError says that a disk is full, in place of what that has led to.
type diskError struct {
	text  string
	cause error
}

func (e *diskError) Error() string { return e.text }
func (e *diskError) Unwrap() error { return e.cause }

// explainDisk says of a start that has failed for want of room that the disk of the store is full.
func (n *node) explainDisk(err error) error {
	if n.o.Embedded.StoreDir == "" || n.o.External != nil {
		return err
	}
	return explainDisk(diskspace.Full(n.o.Embedded.StoreDir), err)
}

// explainDisk does so with what is said of the disk; "" if it is not full.
func explainDisk(full string, err error) error {
	if full == "" || err == nil {
		return err
	}
	e := &diskError{full + ": make room there, or choose another StoreDir", err}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, errUnwritten):
		e.text += ": " + err.Error()
	case !wantsRoom(err):
		return err
	}
	return e
}

// wantsRoom tells whether an error of the NATS server may come of a full disk: it says that a limit
// is reached, or nothing at all.
func wantsRoom(err error) bool {
	return isAny(err, topology.ErrRefused, natsconn.ErrFull, natsconn.ErrSwitchedOff,
		natsconn.ErrTimeout, natsconn.ErrNoResponders, context.DeadlineExceeded)
}
