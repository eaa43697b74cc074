package natsconn

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/internal/virtual"
)

func outbox(t testing.TB, c *Conn, o OutboxOptions) *Outbox {
	t.Helper()
	b, err := c.NewOutbox(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// A program that answers says itself whether it took a message. The word of a stream before it does not count.
func TestOutboxToAProgramThatAnswers(t *testing.T) {
	c := connect(t)
	errNot := errors.New("not taken")
	b := outbox(t, c, OutboxOptions{Answer: func(body []byte) error {
		if string(body) != "taken" {
			return errNot
		}
		return nil
	}})
	if _, err := c.Subscribe("program.*", "", func(m Msg) {
		for _, body := range []string{`{"stream":"S","seq":1}`, string(m.Data)} {
			if err := m.Respond(nil, []byte(body)); err != nil {
				t.Error(err)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		subject, answer string
		want            error
	}{
		{"program.a", "taken", nil},
		{"program.a", "busy", errNot},
		{"nobody.a", "taken", ErrNoResponders},
	} {
		acks := make(chan Ack, 1)
		b.Send(tc.subject, nil, []byte(tc.answer), func(a Ack) { acks <- a })
		if a := receive(t, acks); !errors.Is(a.Err, tc.want) || a.Seq != 0 {
			t.Errorf("%s, %s: got %+v, want %v", tc.subject, tc.answer, a, tc.want)
		}
	}
}

func TestOutboxPipelinesPredictedSequences(t *testing.T) {
	c := connect(t)
	stream(t, c)
	b := outbox(t, c, OutboxOptions{})
	const n = 5000
	acks := make(chan Ack, n)
	var inside, overlaps atomic.Int32
	for i := range uint64(n) {
		h := Header{}
		ExpectLastSeq(h, i)
		b.Send("s.a", h, []byte("x"), func(a Ack) {
			if inside.Add(1) > 1 {
				overlaps.Add(1)
			}
			acks <- a
			inside.Add(-1)
		})
	}
	for i := range uint64(n) {
		if a := receive(t, acks); a.Err != nil || a.Seq != i+1 || a.Duplicate {
			t.Fatalf("message %d: got %+v", i, a)
		}
	}
	if overlaps.Load() > 0 {
		t.Fatal("two outcomes were delivered at a time")
	}
	if got := b.Outstanding(); got != 0 {
		t.Fatalf("got %d outstanding, want 0", got)
	}
}

// pipeline sends n messages with predicted sequences and slips one foreign message in before message at. With chain,
// each message also names the sequence that its predecessor on the subject must have.
func pipeline(t *testing.T, n, at uint64, chain bool) []Ack {
	t.Helper()
	c := connect(t)
	stream(t, c)
	b := outbox(t, c, OutboxOptions{})
	acks := make(chan Ack, n)
	for i := range n {
		if i == at {
			b.Send("s.foreign", nil, nil, func(a Ack) {
				if a.Err != nil {
					t.Error(a.Err)
				}
			})
		}
		h := Header{}
		ExpectLastSeq(h, i)
		if chain {
			ExpectLastSubjectSeq(h, i)
		}
		b.Send("s.a", h, nil, func(a Ack) { acks <- a })
	}
	var all []Ack
	for range n {
		all = append(all, receive(t, acks))
	}
	return all
}

func TestOutboxForeignWriteRefusesTheRestOfAChain(t *testing.T) {
	const n, at = 200, 120
	for i, a := range pipeline(t, n, at, true) {
		if i < at {
			if a.Err != nil || a.Seq != uint64(i+1) {
				t.Fatalf("message %d: got %+v", i, a)
			}
			continue
		}
		wantErr(t, a.Err, ErrWrongSequence)
		e, ok := errors.AsType[*SequenceError](a.Err)
		if !ok || (i == at && e.Last != at+1) {
			t.Fatalf("message %d: got %v, want last %d", i, a.Err, at+1)
		}
	}
}

// The trap that ExpectLastSeq's comment names: the foreign message takes the place of the one that it refuses, and
// the prediction of the next one is right again.
func TestOutboxForeignWriteRefusesOnlyOneWithoutAChain(t *testing.T) {
	const n, at = 200, 120
	for i, a := range pipeline(t, n, at, false) {
		if i != at {
			if a.Err != nil || a.Seq != uint64(i+1) {
				t.Fatalf("message %d: got %+v, want it stored at %d", i, a, i+1)
			}
			continue
		}
		if e, ok := errors.AsType[*SequenceError](a.Err); !ok || e.Last != at+1 {
			t.Fatalf("message %d: got %v, want SequenceError with last %d", i, a.Err, at+1)
		}
	}
}

func TestOutboxNobodyStores(t *testing.T) {
	c := connect(t)
	b := outbox(t, c, OutboxOptions{})
	acks := make(chan Ack, 1)
	b.Send("nowhere.x", nil, nil, func(a Ack) { acks <- a })
	wantErr(t, receive(t, acks).Err, ErrNoStream)
	_, err := c.PublishSync(t.Context(), "nowhere.x", nil, nil)
	wantErr(t, err, ErrNoStream)
}

// A subscriber that does not answer stands for a lost acknowledgement.
func TestOutboxTimeoutIsExact(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		if _, err := c.Subscribe("silent.>", "", func(Msg) {}); err != nil {
			t.Fatal(err)
		}
		b := outbox(t, c, OutboxOptions{Timeout: 7 * time.Second})
		began := time.Now()
		var got []time.Duration
		var mu sync.Mutex
		for range 3 {
			b.Send("silent.a", nil, nil, func(a Ack) {
				mu.Lock()
				defer mu.Unlock()
				if !errors.Is(a.Err, ErrTimeout) || errors.Is(a.Err, ErrPermission) {
					t.Errorf("got %v, want ErrTimeout alone", a.Err)
				}
				got = append(got, time.Since(began))
			})
			time.Sleep(2 * time.Second)
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		want := []time.Duration{7 * time.Second, 9 * time.Second, 11 * time.Second}
		if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
			t.Fatalf("got timeouts after %v, want %v", got, want)
		}
	})
}

// Old outstanding messages keep their slot while the ring grows around them.
func TestOutboxRingGrows(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		stream(t, c)
		if _, err := c.Subscribe("silent.>", "", func(Msg) {}); err != nil {
			t.Fatal(err)
		}
		b := outbox(t, c, OutboxOptions{})
		var late, stored atomic.Int32
		b.Send("silent.a", nil, nil, func(a Ack) {
			if errors.Is(a.Err, ErrTimeout) {
				late.Add(1)
			}
		})
		for range 4 * firstRing {
			b.Send("s.a", nil, nil, func(a Ack) {
				if a.Err == nil {
					stored.Add(1)
				}
			})
		}
		time.Sleep(time.Minute)
		if late.Load() != 1 || stored.Load() != 4*firstRing {
			t.Fatalf("got %d late, %d stored, want 1, %d", late.Load(), stored.Load(), 4*firstRing)
		}
	})
}

// An answer with a number that nobody waits for any more, or that nobody was given, is no other message's.
func TestOutboxAnswersOfOthers(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		stream(t, c)
		if _, err := c.Subscribe("silent", "", func(Msg) {}); err != nil {
			t.Fatal(err)
		}
		b := outbox(t, c, OutboxOptions{})
		acks := make(chan Ack, firstRing)
		for range firstRing {
			b.Send("s.a", nil, nil, func(a Ack) { acks <- a })
		}
		for range firstRing {
			if a := receive(t, acks); a.Err != nil {
				t.Fatal(a.Err)
			}
		}
		b.Send("silent", nil, nil, func(a Ack) { acks <- a }) // in the place of the first
		for _, n := range []uint64{0, 2 * firstRing} {
			if err := c.Publish(b.prefix+strconv.FormatUint(n, 36), nil, []byte(`{"stream":"S","seq":1}`)); err != nil {
				t.Fatal(err)
			}
		}
		wantErr(t, receive(t, acks).Err, ErrTimeout)
	})
}

func TestOutboxCloseFailsTheOutstanding(t *testing.T) {
	c := connect(t)
	if _, err := c.Subscribe("silent.>", "", func(Msg) {}); err != nil {
		t.Fatal(err)
	}
	for _, closer := range []string{"outbox", "connection"} {
		b := outbox(t, c, OutboxOptions{})
		acks := make(chan Ack, 11)
		for range 10 {
			b.Send("silent.a", nil, nil, func(a Ack) { acks <- a })
		}
		if closer == "outbox" {
			b.Close()
		} else {
			c.Close()
		}
		if len(acks) != 10 {
			t.Fatalf("closed by %s: got %d outcomes, want 10", closer, len(acks))
		}
		b.Send("silent.a", nil, nil, func(a Ack) { acks <- a })
		for range 11 {
			wantErr(t, receive(t, acks).Err, ErrClosed)
		}
		b.Close()
	}
	_, err := c.NewOutbox(OutboxOptions{})
	wantErr(t, err, ErrClosed)
}

func TestOutboxRefusesWhatCannotBeSent(t *testing.T) {
	c := connect(t)
	stream(t, c)
	b := outbox(t, c, OutboxOptions{})
	acks := make(chan Ack, 2)
	b.Send("s.a", nil, make([]byte, c.MaxPayload()+1), func(a Ack) { acks <- a })
	wantErr(t, receive(t, acks).Err, ErrTooLarge)
	b.Send("s.a b", nil, nil, func(a Ack) { acks <- a })
	wantErr(t, receive(t, acks).Err, ErrInvalid)
	_, err := c.NewOutbox(OutboxOptions{Grace: -1})
	wantErr(t, err, ErrInvalid)
	_, err = c.NewOutbox(OutboxOptions{Timeout: -1})
	wantErr(t, err, ErrInvalid)
}

// Those who are given up hear so once, whatever comes later; others wait on.
func TestOutboxGivesUp(t *testing.T) {
	c := connect(t)
	held := make(chan Msg, 3)
	if _, err := c.Subscribe("silent.>", "", func(m Msg) { held <- m }); err != nil {
		t.Fatal(err)
	}
	b := outbox(t, c, OutboxOptions{Timeout: time.Hour})
	acks := make(chan string, 4)
	for _, subj := range []string{"silent.1.a", "silent.2.a", "silent.1.b"} {
		b.Send(subj, nil, nil, func(a Ack) { acks <- fmt.Sprint(subj, " ", errors.Is(a.Err, ErrTimeout)) })
	}
	late := []Msg{<-held, <-held, <-held}
	b.GiveUp("silent.1.")
	for _, want := range []string{"silent.1.a true", "silent.1.b true"} {
		if got := receive(t, acks); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	for _, m := range late {
		if err := m.Respond(nil, []byte(`{"stream":"S","seq":3}`)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := receive(t, acks), "silent.2.a false"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	if n := b.Outstanding(); n != 0 || len(acks) != 0 {
		t.Fatalf("%d are outstanding and %d came twice, want none", n, len(acks))
	}
}

func TestOutboxDoneMaySend(t *testing.T) {
	c := connect(t)
	stream(t, c)
	b := outbox(t, c, OutboxOptions{})
	end := make(chan uint64, 1)
	var next func(a Ack)
	next = func(a Ack) {
		if a.Seq == 50 || a.Err != nil {
			end <- a.Seq
			return
		}
		b.Send("s.a", nil, nil, next)
	}
	b.Send("s.a", nil, nil, next)
	if got := receive(t, end); got != 50 {
		t.Fatalf("got %d, want 50", got)
	}
}

func TestPublishSyncSubjectSequence(t *testing.T) {
	c := connect(t)
	stream(t, c)
	put(t, c, "s.other", "")
	h := Header{}
	ExpectLastSubjectSeq(h, 0)
	if seq, err := c.PublishSync(t.Context(), "s.a", h, nil); err != nil || seq != 2 {
		t.Fatalf("got %d, %v, want 2", seq, err)
	}
	_, err := c.PublishSync(t.Context(), "s.a", h, nil)
	if e, ok := errors.AsType[*SequenceError](err); !ok || e.Last != 2 {
		t.Fatalf("got %v, want SequenceError with last 2", err)
	}
}

func TestPublishSyncDuplicate(t *testing.T) {
	c := connect(t)
	stream(t, c)
	b := outbox(t, c, OutboxOptions{})
	acks := make(chan Ack, 2)
	for range 2 {
		b.Send("s.a", Header{"Nats-Msg-Id": {"one"}}, nil, func(a Ack) { acks <- a })
	}
	first, second := receive(t, acks), receive(t, acks)
	if first != (Ack{Seq: 1}) || second != (Ack{Seq: 1, Duplicate: true}) {
		t.Fatalf("got %+v, %+v", first, second)
	}
}

// One writer, 1,000 messages in flight, 256 bytes; with the header that a history record carries.
func BenchmarkOutbox(b *testing.B) {
	for _, expect := range []bool{false, true} {
		b.Run("expect="+strconv.FormatBool(expect), func(b *testing.B) {
			c := connect(b)
			stream(b, c)
			box := outbox(b, c, OutboxOptions{})
			body := make([]byte, 256)
			window := make(chan struct{}, 1000)
			done := func(a Ack) {
				if a.Err != nil {
					b.Error(a.Err)
				}
				<-window
			}
			h := Header{}
			var seq uint64
			b.ReportAllocs()
			for b.Loop() {
				window <- struct{}{}
				if expect {
					ExpectLastSeq(h, seq)
					seq++
					box.Send("s.a", h, body, done)
				} else {
					box.Send("s.a", nil, body, done)
				}
			}
			for len(window) > 0 {
				runtime.Gosched()
			}
		})
	}
}

func BenchmarkParseAck(b *testing.B) {
	m := &nats.Msg{Data: []byte(`{"stream":"drover-default-history-0","seq":1234567}`)}
	b.ReportAllocs()
	for b.Loop() {
		if a := parseAck(m); a.Seq != 1234567 {
			b.Fatal(a)
		}
	}
}
