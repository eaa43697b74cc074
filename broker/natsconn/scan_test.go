package natsconn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/internal/virtual"
)

func TestScan(t *testing.T) {
	c := connect(t)
	stream(t, c)
	scan := func(o ReadOptions) (seqs []uint64) {
		t.Helper()
		if err := c.Scan(t.Context(), "S", o, func(s Stored) error {
			seqs = append(seqs, s.Seq)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return seqs
	}
	if got := scan(ReadOptions{}); got != nil {
		t.Fatalf("empty stream: got %v", got)
	}
	fill(t, c, 1000, 5)
	if got := scan(ReadOptions{}); len(got) != 1000 || got[0] != 1 || got[999] != 1000 {
		t.Fatalf("all: got %d", len(got))
	}
	if got := scan(ReadOptions{FilterSubjects: []string{"s.none"}}); got != nil {
		t.Fatalf("no match: got %v", got)
	}
	if got := scan(ReadOptions{FilterSubjects: []string{"s.1", "s.3"}, StartSeq: 990}); !slices.Equal(got, []uint64{992, 994, 997, 999}) {
		t.Fatalf("two subjects: got %v", got)
	}
	if got := scan(ReadOptions{StartSeq: 1001}); got != nil {
		t.Fatalf("after the end: got %v", got)
	}
	if got := scan(ReadOptions{LastPerSubject: true}); !slices.Equal(got, []uint64{996, 997, 998, 999, 1000}) {
		t.Fatalf("last per subject: got %v", got)
	}
	for _, r := range [][2]uint64{{7, 7}, {7, 22}, {7, 23}, {1, 3}, {0, 3}, {990, 2000}, {900, 2000}, {1001, 1003}, {5, 4}} {
		var want []uint64
		for seq := max(r[0], 1); seq <= min(r[1], 1000); seq++ {
			want = append(want, seq)
		}
		for _, headers := range []bool{false, true} {
			if got := scan(ReadOptions{StartSeq: r[0], EndSeq: r[1], HeadersOnly: headers}); !slices.Equal(got, want) {
				t.Fatalf("from %d to %d: got %v", r[0], r[1], got)
			}
		}
	}
	if got := scan(ReadOptions{FilterSubjects: []string{"s.1", "s.3"}, StartSeq: 990, EndSeq: 995}); !slices.Equal(got, []uint64{992, 994}) {
		t.Fatalf("two subjects, with an end: got %v", got)
	}
	for _, seq := range []uint64{1000, 999, 998} {
		if err := c.DeleteMsg(t.Context(), "S", seq); err != nil {
			t.Fatal(err)
		}
	}
	if got := scan(ReadOptions{StartSeq: 995}); !slices.Equal(got, []uint64{995, 996, 997}) {
		t.Fatalf("last deleted: got %v", got)
	}
	if got := scan(ReadOptions{StartSeq: 998}); got != nil {
		t.Fatalf("only deleted ones: got %v", got)
	}
	if got := scan(ReadOptions{StartSeq: 995, EndSeq: 999}); !slices.Equal(got, []uint64{995, 996, 997}) {
		t.Fatalf("last deleted, with an end: got %v", got)
	}
	if got := scan(ReadOptions{StartSeq: 998, EndSeq: 999}); got != nil {
		t.Fatalf("only deleted ones, with an end: got %v", got)
	}
	if err := c.Purge(t.Context(), "S", "", 1001); err != nil {
		t.Fatal(err)
	}
	if got := scan(ReadOptions{}); got != nil {
		t.Fatalf("purged: got %v", got)
	}
	if got := scan(ReadOptions{LastPerSubject: true}); got != nil {
		t.Fatalf("purged, last: got %v", got)
	}
}

func TestScanIsPromptInVirtualTime(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		stream(t, c)
		fill(t, c, 100, 2)
		if err := c.DeleteMsg(t.Context(), "S", 100); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for _, o := range []ReadOptions{{}, {FilterSubjects: []string{"s.none"}}, {FilterSubjects: []string{"s.0"}}, {LastPerSubject: true}} {
			if err := c.Scan(t.Context(), "S", o, func(Stored) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took >= scanCheck {
			t.Fatalf("got %v, want no waiting", took)
		}
	})
}

func TestScanEnds(t *testing.T) {
	c := connect(t)
	stream(t, c)
	fill(t, c, 100, 1)
	stop, n := errors.New("enough"), 0
	err := c.Scan(t.Context(), "S", ReadOptions{}, func(Stored) error {
		if n++; n == 7 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || n != 7 {
		t.Fatalf("got %v after %d, want the callback's error after 7", err, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = c.Scan(ctx, "S", ReadOptions{}, func(s Stored) error {
		if s.Seq == 3 {
			cancel()
			<-ctx.Done()
		}
		return nil
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want nil or canceled", err)
	}
	wantErr(t, c.Scan(t.Context(), "NONE", ReadOptions{}, func(Stored) error { return nil }), ErrNoStream)
}

// A consumer whose maker was not answered may have sent something by then. Who has been told of the failure gets none of it.
func TestNothingComesAfterAFailure(t *testing.T) {
	for name, read := range map[string]func(context.Context, *Conn, func(Stored)) error{
		"scan": func(ctx context.Context, c *Conn, fn func(Stored)) error {
			return c.Scan(ctx, "S", ReadOptions{}, func(s Stored) error { fn(s); return nil })
		},
		"read": func(ctx context.Context, c *Conn, fn func(Stored)) error {
			_, err := c.Read(ctx, "S", ReadOptions{}, fn)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				srv, stop := start(t, serverOptions(t))
				t.Cleanup(stop)
				c := dial(t, Options{InProcess: srv})
				stream(t, c)
				fill(t, c, 10, 1)
				wire := cutwire.New(srv)
				wire.Judge(func(subject string, _ []byte) cutwire.Verdict {
					if strings.HasPrefix(subject, "$JS.API.CONSUMER.CREATE.") {
						return cutwire.Unanswered
					}
					return cutwire.Pass
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				got := 0
				err := read(ctx, dial(t, Options{InProcess: wire}), func(Stored) { got++ })
				if !errors.Is(err, ErrTimeout) {
					t.Fatalf("got %v, want a timeout", err)
				}
				time.Sleep(time.Minute)
				if got > 0 {
					t.Errorf("%d messages came", got)
				}
			})
		})
	}
}

// Messages that come or go while a scan runs neither stop it nor make it endless.
func TestScanBesideWriters(t *testing.T) {
	c := connect(t)
	stream(t, c, func(cfg *jetstream.StreamConfig) { cfg.MaxMsgsPerSubject = 1 })
	fill(t, c, 500, 100)
	var quit atomic.Bool
	writing := make(chan error, 1)
	go func() {
		for i := 0; !quit.Load(); i++ {
			if _, err := c.PublishSync(t.Context(), fmt.Sprintf("s.%d", i%100), nil, nil); err != nil {
				writing <- err
				return
			}
		}
		writing <- nil
	}()
	for range 20 {
		seen := map[string]bool{}
		if err := c.Scan(t.Context(), "S", ReadOptions{LastPerSubject: true}, func(s Stored) error {
			seen[s.Subject] = true
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if len(seen) != 100 {
			t.Fatalf("got %d subjects, want 100", len(seen))
		}
		if err := c.Scan(t.Context(), "S", ReadOptions{}, func(Stored) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	quit.Store(true)
	if err := receive(t, writing); err != nil {
		t.Fatal(err)
	}
}

// A leisurely scan takes its time, however small its messages are, and misses none.
func TestScanAtARate(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		const n, size = 500, 1000
		stream(t, c, func(cfg *jetstream.StreamConfig) { cfg.MaxMsgSize = 4096 }) // so much goes at once
		for range n {
			put(t, c, "s.x", strings.Repeat("x", size))
		}
		for rate, want := range map[int64]time.Duration{0: 0, 10_000: 49 * time.Second} {
			began, got := time.Now(), uint64(0)
			err := c.Scan(t.Context(), "S", ReadOptions{BytesPerSecond: rate}, func(m Stored) error {
				if got++; m.Seq != got {
					t.Fatalf("got message %d, want %d", m.Seq, got)
				}
				return nil
			})
			if err != nil || got != n {
				t.Fatalf("got %d messages, %v, want %d", got, err, n)
			}
			// Subjects and acknowledgement subjects count too.
			if took := time.Since(began); took < want || took > want*3/2 {
				t.Fatalf("%d bytes a second took %v, want %v", rate, took, want)
			}
		}
		wantErr(t, c.Scan(t.Context(), "S", ReadOptions{BytesPerSecond: -1}, func(Stored) error { return nil }), ErrInvalid)
	})
}
