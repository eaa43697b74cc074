package natsconn

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/internal/virtual"
)

// read starts a reader that hands its messages to a channel.
func read(t *testing.T, c *Conn, o ReadOptions) (*Reader, <-chan Stored) {
	t.Helper()
	ch := make(chan Stored, 100_000)
	r, err := c.Read(t.Context(), "S", o, func(s Stored) { ch <- s })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, ch
}

func TestReaderFollows(t *testing.T) {
	c := connect(t)
	stream(t, c)
	fill(t, c, 1000, 4)
	for name, tt := range map[string]struct {
		opts  ReadOptions
		first uint64
		step  uint64
	}{
		"all":                  {ReadOptions{}, 1, 1},
		"from the middle":      {ReadOptions{StartSeq: 501}, 501, 1},
		"one subject":          {ReadOptions{FilterSubjects: []string{"s.2"}}, 3, 4},
		"subject from within":  {ReadOptions{FilterSubjects: []string{"s.2"}, StartSeq: 500}, 503, 4},
		"only what comes next": {ReadOptions{StartSeq: 1001, FilterSubjects: []string{"s.0", "s.1", "s.2", "s.3"}}, 1001, 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, last, err := c.StreamState(t.Context(), "S")
			if err != nil {
				t.Fatal(err)
			}
			r, ch := read(t, c, tt.opts)
			next := tt.first
			for ; next <= last; next += tt.step {
				s := receive(t, ch)
				if s.Seq != next || string(s.Data) != fmt.Sprint((next-1)%1000) || s.Subject != fmt.Sprintf("s.%d", (next-1)%4) || s.Time.IsZero() {
					t.Fatalf("got %+v, want sequence %d", s, next)
				}
			}
			receive(t, r.CaughtUp())
			fill(t, c, 1000, 4)
			for ; next <= last+1000; next += tt.step {
				if s := receive(t, ch); s.Seq != next {
					t.Fatalf("got %d, want %d", s.Seq, next)
				}
			}
			r.Close()
			receive(t, r.Done())
			if err := r.Err(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestReaderBeginsAtTheFirst(t *testing.T) {
	c := connect(t)
	stream(t, c)
	fill(t, c, 10, 1)
	if err := c.Purge(t.Context(), "S", "", 6); err != nil {
		t.Fatal(err)
	}
	_, ch := read(t, c, ReadOptions{StartSeq: 2})
	if s := receive(t, ch); s.Seq != 6 {
		t.Fatalf("got %d, want 6", s.Seq)
	}
}

func TestReaderLastPerSubject(t *testing.T) {
	c := connect(t)
	stream(t, c)
	fill(t, c, 100, 5)
	r, ch := read(t, c, ReadOptions{LastPerSubject: true, HeadersOnly: true})
	receive(t, r.CaughtUp())
	put(t, c, "s.1", "new")
	for want := uint64(96); want <= 101; want++ {
		if s := receive(t, ch); s.Seq != want || len(s.Data) != 0 {
			t.Fatalf("got %+v, want %d without body", s, want)
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	c := connect(t)
	nop := func(Stored) {}
	_, err := c.Read(t.Context(), "NONE", ReadOptions{}, nop)
	wantErr(t, err, ErrNoStream)
	_, err = c.Read(t.Context(), "S", ReadOptions{StartSeq: 1, LastPerSubject: true}, nop)
	wantErr(t, err, ErrInvalid)
	_, err = c.Read(t.Context(), "S", ReadOptions{FilterSubjects: []string{""}}, nop)
	wantErr(t, err, ErrInvalid)
	_, err = c.Read(t.Context(), "", ReadOptions{}, nop)
	wantErr(t, err, ErrInvalid)
	c.Close()
	_, err = c.Read(t.Context(), "S", ReadOptions{}, nop)
	wantErr(t, err, ErrClosed)
}

// Closing the reader or its connection frees the consumer and ends fn.
func TestReaderCloseLeavesNothing(t *testing.T) {
	c := connect(t)
	stream(t, c)
	fill(t, c, 10, 1)
	r, ch := read(t, c, ReadOptions{})
	receive(t, ch)
	r.Close()
	receive(t, r.Done())
	st, err := c.JetStream().Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	for {
		info, err := st.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.State.Consumers == 0 {
			break
		}
	}
	second, _ := read(t, c, ReadOptions{})
	c.Close()
	receive(t, second.Done())
}

// A server with files stops and starts on the same port, several times, while a writer goes on.
func TestReaderSurvivesServerRestarts(t *testing.T) {
	o := listening(t)
	srv, stop := start(t, o)
	o.Port = port(srv)
	c := dial(t, Options{URL: srv.ClientURL()})
	stream(t, c)
	const rounds, each = 4, 300
	_, ch := read(t, c, ReadOptions{})
	_, latest := read(t, c, ReadOptions{LastPerSubject: true})
	writer := make(chan error, 1)
	go func() {
		for i := range rounds * each {
			for {
				h := Header{}
				ExpectLastSeq(h, uint64(i))
				_, err := c.PublishSync(t.Context(), "s.a", h, fmt.Append(nil, i))
				if e, ok := errors.AsType[*SequenceError](err); err == nil || (ok && e.Last == uint64(i+1)) {
					break // stored now, or by an attempt whose answer was lost
				}
				if !errors.Is(err, ErrTimeout) && !errors.Is(err, ErrNoStream) && !errors.Is(err, ErrDisconnected) {
					writer <- err
					return
				}
			}
		}
		writer <- nil
	}()
	next := uint64(1)
	for round := range rounds {
		for ; next <= uint64((round+1)*each); next++ {
			if s := receive(t, ch); s.Seq != next || string(s.Data) != fmt.Sprint(next-1) {
				t.Fatalf("round %d: got %d %s, want %d", round, s.Seq, s.Data, next)
			}
			if next == uint64(round*each+each/2) {
				stop()
				_, stop = start(t, o)
			}
		}
	}
	t.Cleanup(stop)
	if err := receive(t, writer); err != nil {
		t.Fatal(err)
	}
	var last uint64
	for last < rounds*each {
		s := receive(t, latest)
		if s.Seq <= last {
			t.Fatalf("latest: got %d after %d", s.Seq, last)
		}
		last = s.Seq
	}
	if len(ch) > 0 {
		t.Fatalf("got %+v after the end", <-ch)
	}
}

// A consumer that the server lost without a word is replaced after a few silent seconds.
func TestReaderReplacesALostConsumer(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		stream(t, c)
		fill(t, c, 10, 1)
		r, ch := read(t, c, ReadOptions{})
		time.Sleep(time.Hour) // heartbeats keep it alive
		if len(ch) != 10 {
			t.Fatalf("got %d messages, want 10", len(ch))
		}
		name := consumerOf(r)
		if err := c.JetStream().DeleteConsumer(t.Context(), "S", name); err != nil {
			t.Fatal(err)
		}
		fill(t, c, 10, 1)
		time.Sleep(10 * time.Second)
		if len(ch) != 20 || consumerOf(r) == name {
			t.Fatalf("got %d messages by consumer %s, want 20 by another than %s", len(ch), consumerOf(r), name)
		}
		for want := uint64(1); want <= 20; want++ {
			if s := <-ch; s.Seq != want {
				t.Fatalf("got %d, want %d", s.Seq, want)
			}
		}
	})
}

func consumerOf(r *Reader) string {
	r.turn.lock()
	defer r.turn.unlock()
	return r.name
}

// A slow fn is no reason to begin again, however long it takes.
func TestReaderWaitsForASlowFn(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		stream(t, c)
		fill(t, c, 5, 1)
		var got []uint64
		r, err := c.Read(t.Context(), "S", ReadOptions{}, func(s Stored) {
			time.Sleep(time.Minute)
			got = append(got, s.Seq)
		})
		if err != nil {
			t.Fatal(err)
		}
		name := consumerOf(r)
		time.Sleep(6 * time.Minute)
		if same := consumerOf(r); same != name {
			t.Fatal("the consumer was replaced")
		}
		r.Close()
		<-r.Done()
		if !slices.Equal(got, []uint64{1, 2, 3, 4, 5}) {
			t.Fatalf("got %v", got)
		}
	})
}

// inMemory is for a stream that is made anew: the server removes the files of a deleted one later than the stream.
func inMemory(cfg *jetstream.StreamConfig) { cfg.Storage = jetstream.MemoryStorage }

// A stream that was deleted and made anew uses its sequence numbers again: the reader must not go on as if nothing
// had happened.
func TestReaderStopsWhenTheStreamRegressed(t *testing.T) {
	for name, refill := range map[string]int{"shorter": 3, "as long": 10, "longer": 30} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				c := connect(t)
				stream(t, c, inMemory)
				fill(t, c, 10, 1)
				r, ch := read(t, c, ReadOptions{})
				time.Sleep(time.Second)
				if err := c.JetStream().DeleteStream(t.Context(), "S"); err != nil {
					t.Fatal(err)
				}
				stream(t, c, inMemory)
				fill(t, c, refill, 1)
				<-r.Done()
				wantErr(t, r.Err(), ErrStreamRegressed)
				if len(ch) != 10 {
					t.Fatalf("got %d messages, want the first 10 only", len(ch))
				}
			})
		})
	}
}

// Of the messages whose numbers were used again some are gone by the time the reader looks, the one that it read last among them:
// what is left is newer than that. If all that is left is older, or nothing, the reader goes on.
func TestReaderStopsWhenItsLastNumberWasUsedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		anew   bool
		delete []uint64
		stops  bool
	}{
		"new stream, its last is gone":        {true, []uint64{10}, true},
		"new stream, one in the middle stays": {true, []uint64{1, 2, 3, 5, 6, 7, 8, 9, 10}, true},
		"new stream, nothing stays":           {true, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, false},
		"old stream, its last is gone":        {false, []uint64{10}, false},
		"old stream, the first stays":         {false, []uint64{2, 3, 4, 5, 6, 7, 8, 9, 10}, false},
		"old stream, nothing stays":           {false, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, false},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				c := connect(t)
				stream(t, c, inMemory)
				fill(t, c, 10, 10)
				r, ch := read(t, c, ReadOptions{})
				time.Sleep(time.Second)
				r.turn.lock() // it does not look before all is as it should be
				if tc.anew {
					if err := c.JetStream().DeleteStream(t.Context(), "S"); err != nil {
						t.Fatal(err)
					}
					stream(t, c, inMemory)
					fill(t, c, 10, 10)
				}
				s, err := c.JetStream().Stream(t.Context(), "S")
				if err != nil {
					t.Fatal(err)
				}
				for _, seq := range tc.delete {
					if err := s.DeleteMsg(t.Context(), seq); err != nil {
						t.Fatal(err)
					}
				}
				r.lost()
				r.turn.unlock()
				time.Sleep(time.Minute)
				put(t, c, "s.x", "x")
				time.Sleep(time.Second)
				if err, stopped := r.Err(), errors.Is(r.Err(), ErrStreamRegressed); stopped != tc.stops || !stopped && (err != nil || len(ch) != 11) {
					t.Fatalf("got %d messages, %v, want it to stop: %v, or the next one too", len(ch), err, tc.stops)
				}
			})
		})
	}
}

// The message in the place of the last one was stored before it, as that of a copy of older days.
func TestReaderStopsWhenItsLastIsAnOlderOne(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		stream(t, c, inMemory)
		fill(t, c, 10, 10)
		r, _ := read(t, c, ReadOptions{})
		time.Sleep(time.Second)
		r.turn.lock()
		r.lastTime = r.lastTime.Add(time.Nanosecond)
		r.lost()
		r.turn.unlock()
		time.Sleep(time.Minute)
		wantErr(t, r.Err(), ErrStreamRegressed)
	})
}

func TestReaderRefusesAPositionAfterTheEnd(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		stream(t, c)
		fill(t, c, 10, 1)
		_, err := c.Read(t.Context(), "S", ReadOptions{StartSeq: 12}, func(Stored) {})
		wantErr(t, err, ErrStreamRegressed)
	})
}

func BenchmarkReader(b *testing.B) {
	c := connect(b)
	stream(b, c)
	const n = 50_000
	fill(b, c, n, 1)
	b.ReportAllocs()
	for b.Loop() {
		seen := 0
		if err := c.Scan(b.Context(), "S", ReadOptions{}, func(Stored) error { seen++; return nil }); err != nil || seen != n {
			b.Fatal(seen, err)
		}
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "msgs/s")
}

// Of one consumer every delivery is the next one: after a gap nothing of it is believed any more, and another consumer is asked for. What a
// replica that lags delivers again is passed over.
func TestReaderAfterAGap(t *testing.T) {
	var got []uint64
	r := &Reader{fn: func(s Stored, _ uint64) { got = append(got, s.Seq) }, turn: make(chanMutex, 1), kick: make(chan struct{}, 1), last: 4}
	deliver := func(delivery, seq int) {
		r.receive(0, &nats.Msg{Subject: "s", Reply: fmt.Sprintf("$JS.ACK.S.c.1.%d.%d.1000000000.9", seq, delivery)})
	}
	deliver(1, 4) // again
	deliver(2, 5)
	deliver(3, 7) // purged meanwhile is what is missing
	if !slices.Equal(got, []uint64{5, 7}) || len(r.kick) != 0 {
		t.Fatalf("got %v, and %d requests for another consumer; want 5 and 7, and none", got, len(r.kick))
	}
	deliver(5, 9)
	deliver(6, 10)
	deliver(4, 8) // the next consumer brings it
	if !slices.Equal(got, []uint64{5, 7}) || len(r.kick) != 1 {
		t.Fatalf("got %v after a gap, and %d requests for another consumer; want no more, and one", got, len(r.kick))
	}
}

// A heartbeat says how far its consumer has come: what was the last of it and is lost is missed by that alone.
func TestReaderMissesTheLastMessage(t *testing.T) {
	r := &Reader{fn: func(Stored, uint64) {}, turn: make(chanMutex, 1), kick: make(chan struct{}, 1)}
	r.receive(0, &nats.Msg{Subject: "s", Reply: "$JS.ACK.S.c.1.5.1.1000000000.9"})
	for come, want := range []int{1: 0, 2: 1} {
		r.receive(0, &nats.Msg{Header: nats.Header{headerLastConsumer: {fmt.Sprint(max(come, 1))}}})
		if len(r.kick) != want {
			t.Fatalf("%d deliveries have been made, and one has come: %d requests for another consumer, want %d", come, len(r.kick), want)
		}
	}
}
