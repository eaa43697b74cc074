package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/droverhq/drover/e2e/kit"
	"github.com/droverhq/drover/internal/faultproxy"
)

// restartPause is how long a member that could not start waits for its next try, as under a process manager.
const restartPause = 200 * time.Millisecond

// member is a process of the world that comes back whenever it ends, with what stands between it and NATS. A member whose
// NATS is away may fail to start and is started again; one that has begun its work and ends by itself is a violation.
type member struct {
	w       *world
	name    string
	kind    string // what it is to the schedule of faults
	command func() *exec.Cmd
	proxies []*faultproxy.Proxy

	busy sync.Mutex // held by the fault that is at work on it

	mu     sync.Mutex
	wanted *sync.Cond
	down   bool // it shall not run
	over   bool // the world ends
	p      *process
	starts int
}

// process is one life of a member.
type process struct {
	*kit.Process
	ready    chan struct{} // closed by its first line of output: it works, or, in a role without a server, SIGTERM is its planned end
	ended    chan struct{} // closed after its end, and after ready if it ever was
	expected bool          // its end was asked for; guarded by the member's mu
}

func (m *member) begin() {
	m.wanted = sync.NewCond(&m.mu)
	m.w.wg.Go(func() {
		for m.live() {
		}
	})
}

// live is one life. It reports false when there shall be no other.
func (m *member) live() bool {
	m.mu.Lock()
	for m.down && !m.over {
		m.wanted.Wait()
	}
	if m.over {
		m.mu.Unlock()
		return false
	}
	p, err := m.spawn()
	m.p = p
	m.mu.Unlock()
	if err != nil {
		m.w.violation("%s cannot be started: %v", m.name, err)
		return false
	}
	<-p.ended
	m.mu.Lock()
	expected := p.expected
	m.mu.Unlock()
	if expected {
		return true
	}
	select {
	case <-p.ready:
		m.w.violation("%s has ended by itself: %v; see its log", m.name, p.Err)
	default:
	}
	time.Sleep(restartPause)
	return true
}

// spawn starts the process. Its log is appended to that of its former lives.
func (m *member) spawn() (*process, error) {
	m.starts++
	log := filepath.Join(m.w.dir, m.name+".log")
	if err := appendTo(log, fmt.Sprintf("--- start %d at %s\n", m.starts, time.Now().UTC().Format(time.RFC3339Nano))); err != nil {
		return nil, err
	}
	begun, err := kit.Begin(log, m.command())
	if err != nil {
		return nil, err
	}
	p := &process{Process: begun, ready: make(chan struct{}), ended: make(chan struct{})}
	go p.watch()
	return p, nil
}

func (p *process) watch() {
	if _, more := <-p.Lines; more {
		close(p.ready)
	}
	for range p.Lines {
	}
	<-p.Ended
	close(p.ended)
}

// now is the life that the member leads at this moment.
func (m *member) now() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.p
}

// awaitReady waits until the member works, through all the lives that this takes.
func (m *member) awaitReady(t *testing.T) {
	t.Helper()
	for limit := time.After(patience); ; {
		if p := m.now(); p != nil {
			select {
			case <-p.ready:
				return
			case <-p.ended:
			case <-limit:
				t.Fatalf("%s is not ready after %v", m.name, patience)
			}
		}
		select {
		case <-limit:
			t.Fatalf("%s is not ready after %v", m.name, patience)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// end sends a signal that ends the member, and keeps it down. It waits for a clean end for as long as limit, and kills
// then.
func (m *member) end(s syscall.Signal, limit time.Duration) {
	m.mu.Lock()
	m.down = true
	p := m.p
	p.expected = true
	m.mu.Unlock()
	m.signal(p, s)
	select {
	case <-p.ended:
	case <-time.After(limit):
		m.w.violation("%s has not ended %v after %v; it is killed", m.name, limit, s)
		m.signal(p, syscall.SIGKILL)
		<-p.ended
	}
	if s == syscall.SIGTERM && p.Err != nil && m.isReady(p) {
		m.w.violation("%s: %v after SIGTERM, want exit code 0", m.name, p.Err)
	}
}

func (m *member) isReady(p *process) bool {
	select {
	case <-p.ready:
		return true
	default:
		return false
	}
}

// up lets the member run again.
func (m *member) up() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = false
	m.wanted.Broadcast()
}

func (m *member) signal(p *process, s syscall.Signal) {
	if err := p.Signal(s); err != nil {
		m.w.violation("%s: %v", m.name, err)
	}
}

// finish ends the member for good.
func (m *member) finish() {
	m.mu.Lock()
	m.over = true
	p := m.p
	if p != nil {
		p.expected = true
	}
	m.wanted.Broadcast()
	m.mu.Unlock()
	if p != nil {
		m.signal(p, syscall.SIGKILL)
		<-p.ended
	}
}

func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
