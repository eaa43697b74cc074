package drovertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// standIn speaks as much NATS as a client needs to stay connected while the server is down. It
// keeps nothing; a message that somebody publishes is lost, as in the crash of a server, and
// interrupts the leap.
//
// Without it the client would try to reconnect ten times a second, which makes a leap as slow as
// waiting, and nobody would know that it is wanted.
type standIn struct {
	info      string
	ns        subject.Namespace
	interrupt func() // somebody wants something

	mu    sync.Mutex
	conns []net.Conn
	done  sync.WaitGroup
}

// newStandIn returns one that tells clients of the largest message that the real server takes,
// in bytes.
func newStandIn(ns subject.Namespace, maxPayload int64, interrupt func()) (*standIn, error) {
	info, err := json.Marshal(map[string]any{
		"server_id": "PORTER", "server_name": "porter", "version": "2.12.0", "proto": 1,
		"headers": true, "max_payload": maxPayload,
	})
	if err != nil {
		return nil, err
	}
	return &standIn{info: string(info), ns: ns, interrupt: interrupt}, nil
}

// maxAnswers is more than a client waits for at a time.
const maxAnswers = 1024

// InProcessConn implements nats.InProcessConnProvider.
func (p *standIn) InProcessConn() (net.Conn, error) {
	theirs, ours := net.Pipe()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, ours)
	p.done.Go(func() {
		defer ours.Close()
		// It ends when either side closes; what the client wrote badly is the client's.
		_ = p.serve(ours)
	})
	return theirs, nil
}

// close sends everybody away, who then come to whomever the switch leads to.
func (p *standIn) close() {
	p.mu.Lock()
	for _, c := range p.conns {
		_ = c.Close() // it may be closed already
	}
	p.mu.Unlock()
	p.done.Wait()
}

// serve reads until either side closes. Answers go out from a goroutine of their own: the client
// may be writing to the same pipe with the lock held that its reader needs.
func (p *standIn) serve(c net.Conn) error {
	answers := make(chan string, maxAnswers)
	defer close(answers)
	p.done.Go(func() {
		for line := range answers {
			if _, err := io.WriteString(c, line); err != nil {
				return
			}
		}
	})
	answers <- "INFO " + p.info + "\r\n"
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch strings.ToUpper(words[0]) {
		case "PING":
			answers <- "PONG\r\n"
		case "PUB", "HPUB":
			if err := p.heard(in, words); err != nil {
				return err
			}
		}
	}
}

// heard takes a message. Deciders that announce themselves after they have reconnected, and ask
// brokers what they can do, want nothing.
func (p *standIn) heard(in *bufio.Reader, words []string) error {
	size, err := strconv.Atoi(words[len(words)-1])
	if err != nil || len(words) < 3 {
		return fmt.Errorf("not a message: %q", words)
	}
	if _, err := in.Discard(size + len("\r\n")); err != nil {
		return err
	}
	if !strings.HasPrefix(words[1], strings.TrimSuffix(p.ns.AllAnnounce(), "*")) &&
		words[1] != schemas.BrokersSubject {
		p.interrupt()
	}
	return nil
}
