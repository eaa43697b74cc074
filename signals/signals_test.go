package signals_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/signals"
)

func TestPublish(t *testing.T) {
	conn := embeddedtest.Dial(t)
	ensure(t, conn)
	for i, tc := range []struct{ id, name, body string }{
		{"order-7", "paid", `{"cents":12}`}, {"a.b *>%", "go on.", "text"}, {"ö", "\u2028", "\x00\xff"}, {"x", "empty", ""},
	} {
		seq, err := signals.Publish(t.Context(), conn, "default", tc.id, tc.name, []byte(tc.body))
		if err != nil || seq != uint64(i+1) {
			t.Fatalf("got sequence %d and error %v, want %d and none", seq, err, i+1)
		}
		m, err := conn.GetSeq(t.Context(), ns.StreamSignals(), seq)
		if err != nil {
			t.Fatal(err)
		}
		p, id, name, err := subject.ParseSignalStored(m.Subject)
		if err != nil || id != tc.id || name != tc.name || p != subject.Partition(tc.id, 4) || string(m.Data) != tc.body {
			t.Fatalf("got %q as signal %q of %q in partition %d (%v), want %+v", m.Data, name, id, p, err, tc)
		}
	}
}

func TestPublishOnceBearsItsRequestID(t *testing.T) {
	conn := embeddedtest.Dial(t)
	ensure(t, conn)
	seq, err := signals.PublishOnce(t.Context(), conn, "default", "w", "go", "req 1", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := conn.GetSeq(t.Context(), ns.StreamSignals(), seq)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Header.Get(schemas.RequestIDHeader); got != "req 1" {
		t.Fatalf("P-6: got request id %q, want the request id", got)
	}
}

func TestPublishRefuses(t *testing.T) {
	conn := embeddedtest.Dial(t)
	ensure(t, conn)
	long := strings.Repeat("x", 257)
	for _, tc := range []struct {
		name, ns, id, signal, request string
		body                          int
		want                          error
		text                          string
	}{
		{"namespace", "a.b", "w", "go", "r", 0, subject.ErrInvalidID, "namespace"},
		{"no workflow id", "default", "", "go", "r", 0, subject.ErrInvalidID, "workflow id is empty"},
		{"long workflow id", "default", long, "go", "r", 0, subject.ErrInvalidID, "257 bytes"},
		{"line break in the workflow id", "default", "a\r\nPUB x 0", "go", "r", 0, subject.ErrInvalidID, "control character"},
		{"no name", "default", "w", "", "r", 0, subject.ErrInvalidID, "signal name is empty"},
		{"no UTF-8 in the name", "default", "w", "\xff", "r", 0, subject.ErrInvalidID, "signal name"},
		{"no request id", "default", "w", "go", "", 0, subject.ErrInvalidID, "request id is empty"},
		{"a request id of one space", "default", "w", "go", " ", 0, subject.ErrInvalidID, "request id"},
		{"a request id with a space at its end", "default", "w", "go", "r ", 0, subject.ErrInvalidID, "request id"},
		{"line break in the request id", "default", "w", "go", "a\r\nb", 0, subject.ErrInvalidID, "request id"},
		{"too large", "default", "w", "go", "r", 1 << 20, natsconn.ErrTooLarge, "1048576 bytes"},
	} {
		t.Run("bad input: ids/"+tc.name, func(t *testing.T) {
			body := make([]byte, tc.body)
			_, err := signals.PublishOnce(t.Context(), conn, tc.ns, tc.id, tc.signal, tc.request, body)
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
				t.Fatalf("got %v, want %v and %q", err, tc.want, tc.text)
			}
			if strings.Contains(tc.name, "request") {
				return
			}
			if _, err := signals.Publish(t.Context(), conn, tc.ns, tc.id, tc.signal, body); !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
		})
	}
	if last, err := conn.StreamLastSeq(t.Context(), ns.StreamSignals()); err != nil || last != 0 {
		t.Fatalf("got %d signals (%v), want none", last, err)
	}
}

func TestPublishWaitsForTheStream(t *testing.T) {
	bubble(t, func(t *testing.T, conn *natsconn.Conn) {
		time.AfterFunc(6*time.Second, func() { ensure(t, conn) })
		start := time.Now()
		seq, err := signals.Publish(t.Context(), conn, "default", "w", "go", nil)
		if took := time.Since(start); err != nil || seq != 1 || took < 6*time.Second || took > 8*time.Second {
			t.Fatalf("got sequence %d and error %v after %v, want 1 soon after 6 s", seq, err, took)
		}
		start = time.Now()
		_, err = signals.Publish(t.Context(), conn, "other", "w", "go", nil)
		if took := time.Since(start); !errors.Is(err, natsconn.ErrNoStream) || errors.Is(err, signals.ErrUnknown) || took < 10*time.Second || took > 15*time.Second {
			t.Fatalf("got %v after %v, want ErrNoStream after at least 10 s", err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		_, err = signals.Publish(ctx, conn, "other", "w", "go", nil)
		if took := time.Since(start); !errors.Is(err, natsconn.ErrNoStream) || took > time.Second {
			t.Fatalf("got %v after %v, want ErrNoStream when ctx ends", err, took)
		}
	})
}

// TestUnknownOutcome has a listener in place of the stream that swallows the first signals.
func TestUnknownOutcome(t *testing.T) {
	bubble(t, func(t *testing.T, conn *natsconn.Conn) {
		heard := make(chan natsconn.Msg, 10)
		sub, err := conn.Subscribe(ns.AllSignals(), "", func(m natsconn.Msg) { heard <- m })
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = signals.Publish(t.Context(), conn, "default", "w", "go", nil)
		if !errors.Is(err, signals.ErrUnknown) || len(heard) != 1 {
			t.Fatalf("got %v after %d messages, want ErrUnknown after one: a second could signal twice", err, len(heard))
		}
		if took := time.Since(start); took < 10*time.Second { // an answer as late as an election may still come
			t.Fatalf("got ErrUnknown after %v, want it after at least 10 s", took)
		}
		<-heard
		_, err = signals.PublishOnce(t.Context(), conn, "default", "w", "go", "r", nil)
		if !errors.Is(err, signals.ErrUnknown) || len(heard) < 2 {
			t.Fatalf("got %v after %d messages, want ErrUnknown after several", err, len(heard))
		}
		first, second := <-heard, <-heard
		if first.Header.Get(schemas.RequestIDHeader) != "r" || second.Header.Get(schemas.RequestIDHeader) != "r" {
			t.Fatalf("got headers %v and %v, want the same request id", first.Header, second.Header)
		}
		time.AfterFunc(time.Second, func() {
			if err := sub.Close(); err != nil {
				t.Error(err)
			}
			ensure(t, conn)
		})
		if seq, err := signals.PublishOnce(t.Context(), conn, "default", "w", "go", "r", nil); err != nil || seq != 1 {
			t.Fatalf("got sequence %d and error %v, want 1 from a repeat", seq, err)
		}
	})
}

// A connection that breaks after a signal takes the answer with it. Only one with a request id is sent again: each is stored once.
func TestPublishWhoseConnectionBreaks(t *testing.T) {
	for name, publish := range map[string]func(context.Context, *natsconn.Conn) (uint64, error){
		"once": func(ctx context.Context, conn *natsconn.Conn) (uint64, error) {
			return signals.PublishOnce(ctx, conn, "default", "w", "go", "r", nil)
		},
		"plainly": func(ctx context.Context, conn *natsconn.Conn) (uint64, error) {
			return signals.Publish(ctx, conn, "default", "w", "go", nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				s := embeddedtest.Serve(t, embedded.Options{DontListen: true})
				ensure(t, embeddedtest.Connect(t, s))
				sent := 0
				w := cutwire.New(s.Conn())
				w.Judge(func(subj string, _ []byte) cutwire.Verdict {
					if !strings.HasPrefix(subj, "drover.default.signal.") {
						return cutwire.Pass
					}
					if sent++; sent == 1 {
						return cutwire.Unanswered
					}
					return cutwire.Pass
				})
				conn, err := natsconn.Dial(t.Context(), natsconn.Options{InProcess: w})
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				time.AfterFunc(time.Second, func() {
					if err := conn.NATS().ForceReconnect(); err != nil {
						t.Error(err)
					}
				})
				_, err = publish(t.Context(), conn)
				if again := name == "once"; again != (err == nil) || !again && !errors.Is(err, signals.ErrUnknown) || again != (sent == 2) {
					t.Fatalf("got %v after %d messages", err, sent)
				}
			})
		})
	}
}

func bury(t *testing.T, conn *natsconn.Conn, reason string, seq uint64) schemas.DeadEntry {
	t.Helper()
	l := schemas.DeadLetter{V: schemas.Version, Reason: reason, Subject: "s", Body: fmt.Appendf(nil, "%d", seq), Time: schemas.Timestamp(seq)}
	for range 2 { // the second one finds the first
		if err := signals.Bury(t.Context(), conn, "default", signals.Place{Partition: "0", Stream: "in", Incarnation: "0", Sequence: seq}, l); err != nil {
			t.Fatal(err)
		}
	}
	return schemas.DeadEntry{DeadLetter: l}
}

func collect(t *testing.T, conn *natsconn.Conn, o signals.DeadOptions) (got []schemas.DeadEntry) {
	t.Helper()
	for e, err := range signals.DeadLetters(t.Context(), conn, "default", o) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	return got
}

func TestDeadLetters(t *testing.T) {
	conn := embeddedtest.Dial(t)
	ensure(t, conn)
	if got := collect(t, conn, signals.DeadOptions{}); len(got) != 0 {
		t.Fatalf("got %v, want none yet", got)
	}
	var all []schemas.DeadEntry
	for i := range 20 {
		e := bury(t, conn, []string{"stale-token", "invalid"}[i%2], uint64(i+1))
		e.Sequence = uint64(i + 1)
		all = append(all, e)
	}
	stale := func(e schemas.DeadEntry) bool { return e.Reason == "stale-token" }
	for _, tc := range []struct {
		name string
		o    signals.DeadOptions
		want []schemas.DeadEntry
	}{
		{"all", signals.DeadOptions{}, all},
		{"one reason", signals.DeadOptions{Reason: "invalid"}, slices.DeleteFunc(slices.Clone(all), stale)},
		{"no such reason", signals.DeadOptions{Reason: "inval"}, nil},
		{"a page", signals.DeadOptions{After: 5, Limit: 3}, all[5:8]},
		{"the last page", signals.DeadOptions{After: 18, Limit: 3}, all[18:]},
		{"after the end", signals.DeadOptions{After: 20}, nil},
		{"after all numbers", signals.DeadOptions{After: math.MaxUint64}, nil},
		{"a page of one reason", signals.DeadOptions{Reason: "invalid", After: 2, Limit: 1}, all[3:4]},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, collect(t, conn, tc.o)); diff != "" {
				t.Fatalf("letters (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a loop that ends early", func(t *testing.T) {
		for e, err := range signals.DeadLetters(t.Context(), conn, "default", signals.DeadOptions{}) {
			if err != nil || e.Sequence != 1 {
				t.Fatalf("got entry %d and error %v, want the first", e.Sequence, err)
			}
			break
		}
	})
}

func TestDeadLettersKeepWhatCannotBeRead(t *testing.T) {
	conn := embeddedtest.Dial(t)
	ensure(t, conn)
	subj := ns.Dead("odd", "x")
	if _, err := conn.PublishSync(t.Context(), subj, nil, []byte("\x01\xdd\xff\xff\xff\xff")); err != nil {
		t.Fatal(err)
	}
	bury(t, conn, "invalid", 1)
	got := collect(t, conn, signals.DeadOptions{})
	if len(got) != 2 || got[0].Reason != signals.ReasonUnreadable || got[0].Subject != subj || len(got[0].Body) != 6 || got[1].Reason != "invalid" {
		t.Fatalf("got %+v, want the unreadable entry as it stands and the letter after it", got)
	}
}

func TestDeadLettersErrors(t *testing.T) {
	conn := embeddedtest.Dial(t)
	for _, tc := range []struct {
		name, ns string
		o        signals.DeadOptions
		want     string
	}{
		{"no namespace", "other", signals.DeadOptions{}, `"other" does not exist`},
		{"bad namespace", "a.b", signals.DeadOptions{}, "namespace"},
		{"bad reason", "default", signals.DeadOptions{Reason: "*"}, "Reason"},
		{"bad limit", "default", signals.DeadOptions{Limit: -1}, "Limit is -1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := 0
			for _, err := range signals.DeadLetters(t.Context(), conn, tc.ns, tc.o) {
				if n++; err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("got %v, want %q", err, tc.want)
				}
			}
			if n != 1 {
				t.Fatalf("got %d errors, want one", n)
			}
		})
	}
	err := signals.Bury(t.Context(), conn, "a.b", signals.Place{}, schemas.DeadLetter{})
	if !errors.Is(err, subject.ErrInvalidID) {
		t.Fatalf("got %v, want a refusal of the namespace", err)
	}
}
