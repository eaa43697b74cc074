package natsconn

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/internal/virtual"
)

func batches(c *jetstream.StreamConfig) { c.AllowAtomicPublish = true }

// syncing gives a connection to a server that syncs each message, and the stream S that takes batches.
func syncing(t testing.TB, change ...func(*jetstream.StreamConfig)) *Conn {
	t.Helper()
	o := serverOptions(t)
	o.SyncAlways = true
	srv, stop := start(t, o)
	t.Cleanup(stop)
	c := dial(t, Options{InProcess: srv})
	stream(t, c, append([]func(*jetstream.StreamConfig){batches}, change...)...)
	return c
}

// writer sends records as a partition does: each for a subject of its own, with predicted sequences.
type writer struct {
	t    testing.TB
	box  *Outbox
	next uint64 // predicted
	acks chan outcomeOf
}

// outcomeOf is that of the n-th message, from 1 on.
type outcomeOf struct {
	Ack
	n uint64
}

func newWriter(t testing.TB, c *Conn, o OutboxOptions) *writer {
	return &writer{t: t, box: outbox(t, c, o), acks: make(chan outcomeOf, 10_000)}
}

func (w *writer) send(n int, size int) {
	body := make([]byte, size)
	h := Header{}
	for range n {
		ExpectLastSeq(h, w.next)
		ExpectLastSubjectSeq(h, 0)
		w.next++
		n := w.next
		w.box.Send("s."+strconv.FormatUint(n, 10), h, body, func(a Ack) { w.acks <- outcomeOf{a, n} })
		clear(h) // it may be used again
	}
}

// hold keeps an outbox waiting for an answer: what is sent before the release goes together.
func hold(t *testing.T, c *Conn, b *Outbox) (release func()) {
	t.Helper()
	asked := make(chan Msg, 1)
	s, err := c.Subscribe("held", "", func(m Msg) { asked <- m })
	if err != nil {
		t.Fatal(err)
	}
	b.Send("held", Header{}, nil, func(a Ack) {
		if a.Err != nil {
			t.Errorf("the message that is waited for: %v", a.Err)
		}
	})
	reply := receive(t, asked).Reply
	return func() {
		t.Helper()
		s.Close()
		if err := c.Publish(reply, nil, []byte(`{"stream":"S","seq":1}`)); err != nil {
			t.Fatal(err)
		}
	}
}

// stored tells the headers of each message of S, from the first.
func stored(t testing.TB, c *Conn) []Header {
	t.Helper()
	s, err := c.JetStream().Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	var all []Header
	for n := range s.CachedInfo().State.LastSeq {
		m, err := s.GetMsg(t.Context(), n+1)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.Header)
	}
	return all
}

// The messages that come while one is being synced go together: each is acknowledged in order with its own sequence, and
// keeps what it expects of its subject.
func TestGroupGoesAsOneBatch(t *testing.T) {
	c := syncing(t)
	w := newWriter(t, c, OutboxOptions{Group: 256})
	const n = 2000
	w.send(n, 100)
	for i := range uint64(n) {
		if a := receive(t, w.acks); a.Err != nil || a.Seq != i+1 {
			t.Fatalf("message %d: got %+v", i, a)
		}
	}
	if got := w.box.Outstanding(); got != 0 {
		t.Fatalf("got %d outstanding, want 0", got)
	}
	ids := map[string]int{}
	for i, h := range stored(t, c) {
		if got := h[headerExpectLastSubjectSeq]; !slices.Equal(got, []string{"0"}) {
			t.Fatalf("message %d expects %q of its subject, want 0", i+1, got)
		}
		if id := h[headerBatchID]; id != nil {
			ids[id[0]]++
		}
	}
	most := 0
	for _, size := range ids {
		most = max(most, size)
	}
	if len(ids) == 0 || len(ids) > n/groupFrom || most > 256 {
		t.Fatalf("got %d batches, the largest of %d, want some of up to 256", len(ids), most)
	}
}

// A foreign message refuses the whole group that it comes before, and all after it: nothing that was predicted wrong is stored.
func TestGroupIsRefusedAsOne(t *testing.T) {
	c := syncing(t)
	w := newWriter(t, c, OutboxOptions{Group: 256})
	w.send(1, 0)
	if a := receive(t, w.acks); a.Err != nil {
		t.Fatal(a.Err)
	}
	put(t, c, "s.foreign", "")
	w.send(300, 10)
	for i := range 300 {
		if i == 0 {
			wantErr(t, receive(t, w.acks).Err, ErrWrongSequence) // alone: the first is never held up
			continue
		}
		// The foreign message took the place of the first one, so the others are right again: see ExpectLastSeq.
		if a := receive(t, w.acks); a.Err != nil || a.Seq != uint64(i+2) {
			t.Fatalf("message %d: got %+v", i, a)
		}
	}
	// The same with each tied to what is there: a subject that has a message already refuses all of its group.
	before := len(stored(t, c))
	w.next = uint64(before)
	release := hold(t, c, w.box)
	h := Header{}
	for i := range 20 {
		ExpectLastSeq(h, w.next)
		ExpectLastSubjectSeq(h, 0)
		w.next++
		subject := fmt.Sprintf("s.more.%d", i)
		if i == 10 {
			subject = "s.foreign"
		}
		n := w.next
		w.box.Send(subject, h, nil, func(a Ack) { w.acks <- outcomeOf{a, n} })
	}
	release()
	for range 20 {
		wantErr(t, receive(t, w.acks).Err, ErrWrongSequence)
	}
	if got := len(stored(t, c)); got != before {
		t.Fatalf("got %d messages stored of a group that was refused, want none", got-before)
	}
}

// Of a batch only the first message proves what the stream ends with, and each what its subject had before the batch. So a batch ends before
// one that does not count on, and before a subject that comes again.
func TestWhatMakesABatch(t *testing.T) {
	type message struct {
		subject string
		expects uint64
		size    int
		id      string
	}
	five := func(change func([]message)) []message {
		all := []message{{"a", 7, 0, ""}, {"b", 8, 0, ""}, {"c", 9, 0, ""}, {"d", 10, 0, ""}, {"e", 11, 0, ""}}
		change(all)
		return all
	}
	for name, tt := range map[string]struct {
		waiting []message
		single  bool
		want    int
	}{
		"all":                              {five(func([]message) {}), false, 5},
		"the server takes none":            {five(func([]message) {}), true, 0},
		"one more than may be":             {append(five(func([]message) {}), message{"f", 12, 0, ""}), false, 5},
		"a subject again":                  {five(func(m []message) { m[3].subject = "b" }), false, 3},
		"one that leaves a number out":     {five(func(m []message) { m[3].expects, m[4].expects = 11, 12 }), false, 3},
		"one that expects what was before": {five(func(m []message) { m[2].expects = 8 }), false, 2},
		"one with a message id":            {five(func(m []message) { m[1].id = "x" }), false, 1},
		"more bytes than the server keeps": {five(func(m []message) { m[0].size, m[4].size = groupBytes/2, groupBytes/2 }), false, 4},
	} {
		t.Run(name, func(t *testing.T) {
			g := grouping{most: 5, single: tt.single}
			for i, m := range tt.waiting {
				h := Header{}
				ExpectLastSeq(h, m.expects)
				if m.id != "" {
					h.Set("Nats-Msg-Id", m.id)
				}
				g.waiting = append(g.waiting, newOutgoing(uint64(i), m.subject, h, make([]byte, m.size), 8<<20))
			}
			for range 2 { // what was seen once is not remembered
				if got := g.fitting(); got != tt.want {
					t.Fatalf("got %d, want %d", got, tt.want)
				}
			}
		})
	}
}

// What may not be in one batch is stored all the same, in order.
func TestGroupOfWhatDoesNotFit(t *testing.T) {
	c := syncing(t)
	b := outbox(t, c, OutboxOptions{Group: 8})
	acks := make(chan Ack, 100)
	last := map[string]uint64{}
	h := Header{}
	for i := range uint64(100) {
		clear(h)
		subject := fmt.Sprintf("s.%d", i%7) // again within eight
		ExpectLastSeq(h, i)
		ExpectLastSubjectSeq(h, last[subject])
		last[subject] = i + 1
		body := make([]byte, 10)
		switch i % 10 {
		case 3:
			delete(h, headerExpectLastSeq)
		case 5:
			h["Nats-Msg-Id"] = []string{strconv.FormatUint(i, 10)}
		case 9:
			body = make([]byte, 600<<10) // two are more than a group
		}
		b.Send(subject, h, body, func(a Ack) { acks <- a })
	}
	for i := range uint64(100) {
		if a := receive(t, acks); a.Err != nil || a.Seq != i+1 {
			t.Fatalf("message %d: got %+v", i, a)
		}
	}
	b.Send("s.a b", h, nil, func(a Ack) { acks <- a })
	wantErr(t, receive(t, acks).Err, ErrInvalid)
	b.Send("s.a", h, make([]byte, c.MaxPayload()+1), func(a Ack) { acks <- a })
	wantErr(t, receive(t, acks).Err, ErrTooLarge)
}

// A stream that takes no batches, and a server that gathers smaller ones: the messages go one by one, and nothing is stored twice.
func TestGroupWithoutBatches(t *testing.T) {
	for name, make := range map[string]func(t *testing.T) *Conn{
		"the stream takes none": func(t *testing.T) *Conn {
			return syncing(t, func(s *jetstream.StreamConfig) { s.AllowAtomicPublish = false })
		},
		"the server takes smaller ones": func(t *testing.T) *Conn {
			o := serverOptions(t)
			o.JetStreamLimits.MaxBatchSize = 3
			srv, stop := start(t, o)
			t.Cleanup(stop)
			c := dial(t, Options{InProcess: srv})
			stream(t, c, batches)
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := make(t)
			w := newWriter(t, c, OutboxOptions{Group: 100})
			w.send(500, 10)
			for i := range uint64(500) {
				if a := receive(t, w.acks); a.Err != nil || a.Seq != i+1 {
					t.Fatalf("message %d: got %+v", i, a)
				}
			}
			for i, h := range stored(t, c) {
				if h[headerBatchID] != nil {
					t.Fatalf("message %d is of a batch", i+1)
				}
				if got := h.Get(headerExpectLastSeq); got != strconv.Itoa(i) {
					t.Fatalf("message %d expects %q as the last of the stream, want %d", i+1, got, i)
				}
			}
		})
	}
}

// A batch is refused as such just after the end of its time: its messages have their outcomes, and are not sent again.
func TestRefusalOfAGroupThatIsOver(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		stream(t, c, batches)
		var silent atomic.Int32
		if _, err := c.Subscribe("silent.>", "", func(Msg) { silent.Add(1) }); err != nil {
			t.Fatal(err)
		}
		b := outbox(t, c, OutboxOptions{Group: 10})
		acks := make(chan Ack, 20)
		release := hold(t, c, b)
		for i := range 6 {
			h := Header{}
			ExpectLastSeq(h, uint64(i))
			b.Send("silent."+strconv.Itoa(i), h, nil, func(a Ack) { acks <- a })
		}
		release()
		synctest.Wait()
		b.mu.Lock()
		for n := b.head; n != b.next; n++ {
			b.slot(n).deadline = 0
		}
		b.mu.Unlock()
		late, _ := b.expired() // the sweeper has not come to what follows
		b.received(6, Ack{Err: &APIError{ErrCode: batchCodes[0]}})
		b.deliver(late...)
		synctest.Wait()
		if len(late) != 6 || len(acks) != 6 || silent.Load() != 6 || b.group.single {
			t.Errorf("%d messages are late, with %d outcomes; %d were sent, and single ones from now on: %v; want 6, 6, 6 and batches", len(late), len(acks), silent.Load(), b.group.single)
		}
	})
}

// A group whose answer is lost is late as a whole, each message by its own time; those after it are not lost with it.
func TestGroupWhoseAnswerIsLost(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		if _, err := c.Subscribe("silent.>", "", func(Msg) {}); err != nil {
			t.Fatal(err)
		}
		b := outbox(t, c, OutboxOptions{Timeout: 7 * time.Second, Group: 10})
		began := time.Now()
		var mu sync.Mutex
		got := map[time.Duration]int{}
		send := func(n int) {
			for i := range n {
				h := Header{}
				ExpectLastSeq(h, uint64(i))
				b.Send("silent."+strconv.Itoa(i), h, nil, func(a Ack) {
					mu.Lock()
					defer mu.Unlock()
					if !errors.Is(a.Err, ErrTimeout) {
						t.Errorf("got %v, want ErrTimeout", a.Err)
					}
					got[time.Since(began)]++
				})
			}
		}
		send(6)
		time.Sleep(2 * time.Second)
		send(6)
		time.Sleep(time.Minute)
		mu.Lock()
		if got[7*time.Second] != 6 || got[9*time.Second] != 6 {
			t.Errorf("got timeouts %v, want 6 after 7s and 6 after 9s", got)
		}
		mu.Unlock()
		if n := b.Outstanding(); n != 0 {
			t.Errorf("got %d outstanding, want 0", n)
		}
		// The writer is still good.
		stream(t, c, batches)
		done := make(chan Ack, 1)
		b.Send("s.a", nil, nil, func(a Ack) { done <- a })
		if a := <-done; a.Err != nil || a.Seq != 1 {
			t.Errorf("got %+v", a)
		}
	})
}

func TestGroupClosed(t *testing.T) {
	c := connect(t)
	if _, err := c.Subscribe("silent.>", "", func(Msg) {}); err != nil {
		t.Fatal(err)
	}
	b := outbox(t, c, OutboxOptions{Group: 10})
	acks := make(chan Ack, 31)
	for i := range 30 {
		h := Header{}
		ExpectLastSeq(h, uint64(i))
		b.Send("silent.a", h, nil, func(a Ack) { acks <- a })
	}
	b.Close()
	if len(acks) != 30 {
		t.Fatalf("got %d outcomes, want 30", len(acks))
	}
	b.Send("silent.a", nil, nil, func(a Ack) { acks <- a })
	for range 31 {
		wantErr(t, receive(t, acks).Err, ErrClosed)
	}
	for _, wrong := range []int{-1, maxGroup + 1} {
		_, err := c.NewOutbox(OutboxOptions{Group: wrong})
		wantErr(t, err, ErrInvalid)
	}
}

// A connection that breaks takes the answers with it: every message gets one outcome, and what was stored is what the outcomes do
// not exclude.
func TestGroupConnectionBreaks(t *testing.T) {
	o := listening(t)
	srv, stop := start(t, o)
	c := dial(t, Options{URL: srv.ClientURL()})
	stream(t, c, batches)
	w := newWriter(t, c, OutboxOptions{Group: 50, Timeout: 5 * time.Second})
	w.send(200, 1000)
	for range 100 {
		if a := receive(t, w.acks); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	o.Port = port(srv)
	stop()
	w.send(500, 1000)
	_, stop = start(t, o)
	t.Cleanup(stop)
	good := 100
	for range 600 {
		a := receive(t, w.acks)
		switch {
		case a.Err == nil:
			good++
		case !slices.ContainsFunc([]error{ErrTimeout, ErrDisconnected, ErrWrongSequence, ErrNoStream}, func(e error) bool { return errors.Is(a.Err, e) }):
			t.Fatal(a.Err)
		}
	}
	if _, err := c.StreamLastSeq(t.Context(), "S"); err != nil { // waits for the connection, as stored does not
		t.Fatal(err)
	}
	if got := len(stored(t, c)); got < good {
		t.Fatalf("got %d messages stored, want at least the %d that were acknowledged", got, good)
	}
}

// Many writers of many streams at once, with a server that syncs.
func BenchmarkGroup(b *testing.B) {
	for _, group := range []int{0, 256} {
		for _, window := range []int{4, 16, 64} {
			b.Run(fmt.Sprintf("group=%d/window=%d", group, window), func(b *testing.B) {
				o := serverOptions(b)
				o.SyncAlways, o.JetStreamLimits = true, server.JSLimitOpts{}
				srv, stop := start(b, o)
				b.Cleanup(stop)
				c := dial(b, Options{InProcess: srv})
				stream(b, c, batches)
				w := newWriter(b, c, OutboxOptions{Group: group})
				w.send(window, 600)
				for b.Loop() {
					if a := receive(b, w.acks); a.Err != nil {
						b.Fatal(a.Err)
					}
					w.send(1, 600)
				}
			})
		}
	}
}
