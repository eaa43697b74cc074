package broker_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

var inboxSeeds = flag.Int("inbox-seeds", 6, "faults: how many random deliveries of inbox messages are tried")

// echo stores messages of the two logs again: a hostile client with the right to publish, or a sender that repeats itself.
// What it stored itself is let alone.
type echo struct {
	*reference
	random *rand.Rand
	mu     sync.Mutex
	all    []*nats.Msg
	again  int
}

const echoed = "Echoed"

// listen makes the echo hear everything that is stored, and store it again at once, or later, or both.
func (e *echo) listen() (stop func()) {
	var wg sync.WaitGroup
	hear := func(log, stored string, seq uint64, h nats.Header, body []byte) {
		if h.Get(echoed) != "" {
			return
		}
		m := &nats.Msg{Subject: stored, Data: bytes.Clone(body), Header: nats.Header{echoed: {"yes"}}}
		if log == ns.StreamSignals() {
			_, wid, name, err := subject.ParseSignalStored(stored)
			if err != nil {
				e.t.Error(err)
				return
			}
			m.Subject = ns.Signal(wid, name)
			id := h.Get(schemas.RequestIDHeader)
			if id == "" {
				e.t.Errorf("signal %d has no id: a second one would be another signal", seq)
				return
			}
			m.Header[schemas.RequestIDHeader] = []string{id}
		} else if to := h.Get(natsconn.HeaderSubject); to != "" {
			m.Header[natsconn.HeaderSubject] = []string{to}
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.all = append(e.all, m)
		for range 1 + e.random.IntN(2) {
			wait := []time.Duration{0, time.Millisecond, 300 * time.Millisecond, 3 * time.Second, 12 * time.Second}[e.random.IntN(5)]
			wg.Go(func() {
				time.Sleep(wait)
				e.store(m)
			})
		}
	}
	var readers []*natsconn.Reader
	for _, log := range []string{ns.StreamIn(0), ns.StreamSignals()} {
		r, err := e.post.Read(e.t.Context(), log, natsconn.ReadOptions{}, func(m natsconn.Stored) { hear(log, m.Subject, m.Seq, m.Header, m.Data) })
		if err != nil {
			e.t.Fatal(err)
		}
		readers = append(readers, r)
	}
	return func() {
		for _, r := range readers {
			r.Close()
			<-r.Done()
		}
		wg.Wait()
	}
}

func (e *echo) store(m *nats.Msg) {
	c := *m // the library writes into what it sends
	c.Header = nats.Header{}
	maps.Copy(c.Header, m.Header)
	if _, err := e.js.PublishMsg(e.t.Context(), &c); err != nil {
		e.t.Errorf("store %s again: %v", m.Subject, err)
		return
	}
	e.mu.Lock()
	e.again++
	e.mu.Unlock()
}

// Every message of the inbox and every signal comes twice or three times: at once, after others, after the run has ended.
// At the end all of them come once more, in any order. Outcomes, rings, reports of children, signals and answers between
// workflows, requests with ids and starts are all taken once.
func TestMessagesComeAgain(t *testing.T) { // P-3, P-5, P-6, P-7, I4, I5, I6, I8, I10, I12
	for seed := range *inboxSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			defer runtime.GC() // the client library keeps timers for the whole process, which belong to this bubble
			virtually(t, 1, func(t *testing.T, f *fleet) {
				random := rand.New(rand.NewPCG(uint64(seed), 4))
				judge := map[string]func(string, []byte) cutwire.Verdict{}
				if seed%2 == 1 { // and the owner changes in the middle
					judge[roleBroker] = nth(2+random.IntN(30), "drover.default.history.", cutwire.CutAfter)
				}
				r := refer(f, judge)
				defer r.stop()
				e := &echo{reference: r, random: random}
				stop := e.listen()
				result := r.drive()
				time.Sleep(3 * time.Minute) // beyond the window in which the server itself knows signals again
				e.mu.Lock()
				all := e.all
				e.mu.Unlock()
				for _, i := range random.Perm(len(all)) {
					e.store(all[i])
				}
				stop()
				r.want(result, false)
				t.Logf("%d messages, stored again %d times; dead letters: %s", len(all), e.again, strings.Join(f.dead(), " "))
			})
		})
	}
}
