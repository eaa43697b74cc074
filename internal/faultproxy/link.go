package faultproxy

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	readSize = 64 << 10
	// waiting is how many pieces of one direction may wait; after that the sender is held up.
	waiting = 256
	// unwantedMost bounds what a link remembers of answers that are to be lost. One that never
	// comes stays for ever.
	unwantedMost = 64 << 10
)

// link is one connection.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	done           chan struct{}
	once           sync.Once
	holed          atomic.Bool // bytes have vanished

	mu       sync.Mutex
	unwanted map[string]struct{} // reply subjects of messages whose answer is to be lost
}

// piece is what is written at once.
type piece struct {
	bytes []byte
	due   time.Time // zero: now
}

func (l *link) close() {
	l.once.Do(func() {
		close(l.done)
		l.client.Close()
		l.server.Close()
	})
}

// pump moves one direction. When its source ends the whole link does, unless the end is among what
// vanishes or is held.
func (l *link) pump(d Direction) {
	from, to := l.client, l.server
	if d == ToClient {
		from, to = to, from
	}
	pieces := make(chan piece, waiting)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(pieces)
		l.read(d, from, to, pieces)
	})
	for p := range pieces {
		if !l.write(d, to, p) {
			break
		}
	}
	l.awaitSound(d)
	l.close()
	for range pieces { // the reader must not be stuck
	}
	wg.Wait()
}

func (l *link) read(d Direction, from, to net.Conn, pieces chan<- piece) {
	var f framer
	buf := make([]byte, readSize)
	last := time.Time{}
	for {
		n, err := from.Read(buf)
		if n > 0 {
			faults, _ := l.proxy.now()
			if out := l.judge(d, to, faults, f.add(buf[:n])); len(out) > 0 {
				p := piece{bytes: out}
				if faults.delay > 0 || faults.jitter > 0 {
					p.due = time.Now().Add(faults.delay + rand.N(faults.jitter+1))
				}
				if p.due.Before(last) { // the order stays, also when a delay ends
					p.due = last
				}
				last = p.due
				select {
				case pieces <- p:
				case <-l.done:
					return
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// judge returns the bytes to pass on now.
func (l *link) judge(d Direction, to net.Conn, f faults, frames []frame) []byte {
	var out []byte
	for _, fr := range frames {
		switch {
		case fr.subject == "":
			out = append(out, fr.bytes...)
		case d == ToClient:
			if l.lost(fr.subject) {
				l.proxy.counts.replies.Add(1)
				continue
			}
			out = append(out, fr.bytes...)
		default:
			out = l.fromClient(out, to, f, fr)
		}
	}
	return out
}

func (l *link) fromClient(out []byte, to net.Conn, f faults, fr frame) []byte {
	if fr.reply != "" && f.dropReplies != nil && f.dropReplies(fr.subject) {
		l.lose(fr.reply)
	}
	if f.duplicate != nil && f.duplicate(fr.subject) {
		l.proxy.counts.copies.Add(1)
		twin := fr.withoutReply()
		if f.copyAfter <= 0 {
			return append(append(out, fr.bytes...), twin...)
		}
		l.later(to, twin, f.copyAfter)
	}
	if f.postpone != nil && f.postpone(fr.subject) {
		l.proxy.counts.postponed.Add(1)
		l.later(to, fr.bytes, f.postponeBy)
		return out
	}
	return append(out, fr.bytes...)
}

// later writes a whole frame after d, between whatever else is written then.
func (l *link) later(to net.Conn, b []byte, d time.Duration) {
	b = append([]byte(nil), b...)
	l.proxy.wg.Go(func() {
		l.write(ToServer, to, piece{bytes: b, due: time.Now().Add(d)})
	})
}

func (l *link) lose(reply string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unwanted) < unwantedMost {
		l.unwanted[reply] = struct{}{}
	}
}

func (l *link) lost(subject string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.unwanted[subject]
	delete(l.unwanted, subject)
	return ok
}

// write waits until a piece is due and may pass, and writes it. A net.Conn writes each piece whole,
// also if two goroutines write. It reports false when the link has ended.
func (l *link) write(d Direction, to net.Conn, p piece) bool {
	if !l.awaitTime(p.due) {
		return false
	}
	for {
		f, changed := l.proxy.now()
		switch {
		case f.silent[d]:
			l.holed.Store(true)
			l.proxy.counts.vanished.Add(int64(len(p.bytes)))
			return true
		case f.stalled[d]:
			select {
			case <-changed:
			case <-l.done:
				return false
			}
		case l.holed.Load():
			// Heal is about to close the link. Nothing may pass after a hole.
			return false
		default:
			_, err := to.Write(p.bytes)
			return err == nil
		}
	}
}

func (l *link) awaitTime(due time.Time) bool {
	wait := time.Until(due)
	if due.IsZero() || wait <= 0 {
		return true
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.done:
		return false
	}
}

// awaitSound waits while the end of a stream cannot be seen on its other side.
func (l *link) awaitSound(d Direction) {
	for {
		f, changed := l.proxy.now()
		if !f.silent[d] && !f.stalled[d] {
			return
		}
		select {
		case <-changed:
		case <-l.done:
			return
		}
	}
}
