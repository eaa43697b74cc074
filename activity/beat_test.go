package activity_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/schemas"
)

// beatBook answers heartbeats and writes down what they said and when.
type beatBook struct {
	mu     sync.Mutex
	said   []string
	at     []time.Time
	answer schemas.BeatAnswer
}

func (b *beatBook) beat(h schemas.Heartbeat) schemas.BeatAnswer {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, h.Token+" "+string(h.Details))
	b.at = append(b.at, time.Now())
	return b.answer
}

func (b *beatBook) set(a schemas.BeatAnswer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = a
}

func beating(t *schemas.ActivityTask) { t.Heartbeat = schemas.Seconds(30) }

// Without a heartbeat timeout a second counts, so that a loop that beats at each step does not send at each.
func TestHeartbeatsWithoutATimeoutAreThrottled(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var book beatBook
		r.onBeat(book.beat)
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
			for range 100 { // for 2.5 s
				if err := activity.Heartbeat(ctx, nil); err != nil {
					return "", err
				}
				time.Sleep(25 * time.Millisecond)
			}
			return "done", nil
		}))
		r.start(w)
		for _, timeout := range []schemas.Duration{0, -1} {
			book.said = nil
			r.dispatch(func(t *schemas.ActivityTask) { t.Heartbeat = timeout })
			r.next(schemas.ReportStarted)
			r.next(schemas.ReportSuccess)
			if n := len(book.said); n != 3 {
				t.Errorf("with a timeout of %d: got %d heartbeats, want one a second", timeout, n)
			}
		}
	})
}

// What is said while a heartbeat waits for its answer is sent when its turn has come, unless that answer is that nobody listens any more.
func TestHeartbeatWhileOneIsUnderWay(t *testing.T) {
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprintf("gone %v", gone), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				var book beatBook
				r.onBeat(func(h schemas.Heartbeat) schemas.BeatAnswer {
					if string(h.Details) == "2" {
						time.Sleep(3 * time.Second)
						book.set(schemas.BeatAnswer{Gone: gone})
					}
					return book.beat(h)
				})
				w := r.worker()
				activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
					for i, pause := range []time.Duration{0, 11 * time.Second, time.Minute} {
						if err := activity.Heartbeat(ctx, textf("%d", i+1)); err != nil {
							return "", err
						}
						time.Sleep(pause)
					}
					return "done", nil
				}))
				r.start(w)
				r.dispatch(beating)
				r.next(schemas.ReportStarted)
				time.Sleep(2 * time.Minute)
				book.mu.Lock()
				defer book.mu.Unlock()
				want := []string{"RUN.5.1 1", "RUN.5.1 2", "RUN.5.1 3"}
				if gone {
					want = want[:2]
				}
				if diff := cmp.Diff(want, book.said); diff != "" {
					t.Errorf("heartbeats (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestHeartbeatsAreThrottled(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var book beatBook
		r.onBeat(book.beat)
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
			for i := range 100 { // for 50 s
				if err := activity.Heartbeat(ctx, textf("%d", i)); err != nil {
					return "", err
				}
				time.Sleep(500 * time.Millisecond)
			}
			time.Sleep(time.Minute) // the last details go out even though nobody calls
			return "done", nil
		}))
		r.start(w)
		r.dispatch(beating)
		r.next(schemas.ReportStarted)
		r.next(schemas.ReportSuccess)
		// The call of i = 20·n comes at the same instant as the timer of 10 s; either may be first.
		want := []int{0, 20, 40, 60, 80, 99}
		if len(book.said) != len(want) {
			t.Fatalf("S1-12: got heartbeats %q, want %d", book.said, len(want))
		}
		for i, s := range book.said {
			_, text, _ := strings.Cut(s, " ")
			n, err := strconv.Atoi(text)
			if err != nil || n != want[i] && n != want[i]-1 {
				t.Errorf("heartbeat %d: got %q, want the last details, %d", i, s, want[i])
			}
			if i > 0 && book.at[i].Sub(book.at[i-1]) < 10*time.Second {
				t.Errorf("heartbeat %d came after %v, want at most one in a third of 30s", i, book.at[i].Sub(book.at[i-1]))
			}
		}
	})
}

// What an attempt has said last is told before its end, if another may follow: it goes on from there.
func TestLastHeartbeatGoesBeforeTheEnd(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(ctx context.Context) (string, error)
		want []string
	}{
		{"it fails", func(context.Context) (string, error) { return "", errors.New("broken") }, []string{"1", "3"}},
		{"it panics", func(context.Context) (string, error) { panic("broken") }, []string{"1", "3"}},
		{"its goroutine ends", func(context.Context) (string, error) { runtime.Goexit(); return "", nil }, []string{"1", "3"}},
		{"its time is over", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }, []string{"1", "3"}},
		{"it succeeds", func(context.Context) (string, error) { return "done", nil }, []string{"1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				var book beatBook
				r.onBeat(book.beat)
				w := r.worker()
				activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
					for i := range 3 {
						if err := activity.Heartbeat(ctx, textf("%d", i+1)); err != nil {
							return "", err
						}
					}
					return tc.end(ctx)
				}))
				r.start(w)
				r.dispatch(beating, func(t *schemas.ActivityTask) { t.StartToClose = schemas.Seconds(5) })
				time.Sleep(8 * time.Second)
				r.settled("PCI")
				want := make([]string, len(tc.want))
				for i, s := range tc.want {
					want[i] = "RUN.5.1 " + s
				}
				if diff := cmp.Diff(want, book.said); diff != "" {
					t.Fatalf("heartbeats (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// So is what is handed back because the worker stops.
func TestLastHeartbeatGoesBeforeATaskIsHandedBack(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var book beatBook
		r.onBeat(book.beat)
		w := r.worker(func(o *activity.Options) { o.DrainTimeout = time.Second })
		activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
			for i := range 3 {
				if err := activity.Heartbeat(ctx, textf("%d", i+1)); err != nil {
					return "", err
				}
			}
			<-ctx.Done()
			return "", ctx.Err()
		}))
		stop := r.start(w)
		r.dispatch(beating, func(t *schemas.ActivityTask) { t.Heartbeat = schemas.Seconds(600) })
		time.Sleep(time.Second)
		if err := stop(); !errors.Is(err, activity.ErrDrainTimeout) {
			t.Fatalf("got %v, want ErrDrainTimeout", err)
		}
		if diff := cmp.Diff([]string{"RUN.5.1 1", "RUN.5.1 3"}, book.said); diff != "" {
			t.Errorf("heartbeats (-want +got):\n%s", diff)
		}
	})
}

// Details wait for their turn while the activity goes on with its buffer.
func TestHeartbeatKeepsNoBuffer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var book beatBook
		r.onBeat(book.beat)
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
			buffer := make([]byte, 5)
			for _, text := range []string{"page1", "page2"} {
				copy(buffer, text)
				if err := activity.Heartbeat(ctx, buffer); err != nil {
					return "", err
				}
			}
			copy(buffer, "other")
			time.Sleep(time.Minute)
			return "done", nil
		}))
		r.start(w)
		r.dispatch(beating)
		r.next(schemas.ReportStarted)
		r.next(schemas.ReportSuccess)
		if diff := cmp.Diff([]string{"RUN.5.1 page1", "RUN.5.1 page2"}, book.said); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestNoHeartbeatByItself(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var book beatBook
		r.onBeat(book.beat)
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { time.Sleep(5 * time.Minute); return "", nil }))
		r.start(w)
		r.dispatch(beating)
		r.next(schemas.ReportStarted)
		r.next(schemas.ReportSuccess)
		if len(book.said) != 0 {
			t.Fatalf("got %q, want none: a heartbeat is the activity's own statement", book.said)
		}
	})
}

func TestCancelComesByHeartbeat(t *testing.T) {
	for _, tc := range []struct {
		name    string
		end     func(ctx context.Context) (string, error)
		kind    schemas.ReportKind
		details string
	}{
		{"obeyed", func(ctx context.Context) (string, error) { return "", context.Cause(ctx) }, schemas.ReportCanceled, ""},
		{"obeyed as contexts go", func(ctx context.Context) (string, error) { return "", ctx.Err() }, schemas.ReportCanceled, ""},
		{"obeyed with details", func(context.Context) (string, error) { return "", activity.Canceled("half done") }, schemas.ReportCanceled, "half done"},
		{"too late", func(context.Context) (string, error) { return "done", nil }, schemas.ReportSuccess, ""},
		{"failed meanwhile", func(context.Context) (string, error) { return "", errors.New("boom") }, schemas.ReportFailed, "boom"},
	} {
		t.Run("S1-15/"+tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				var book beatBook
				r.onBeat(book.beat)
				w := r.worker()
				activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
					if err := activity.Heartbeat(ctx, nil); err != nil {
						t.Errorf("got %v, want nil before the request", err)
					}
					time.Sleep(time.Minute)
					if ctx.Err() != nil {
						t.Error("the context ended before a heartbeat brought the request")
					}
					book.set(schemas.BeatAnswer{CancelRequested: true})
					if err := activity.Heartbeat(ctx, nil); !errors.Is(err, activity.ErrCanceled) {
						t.Errorf("got %v, want ErrCanceled", err)
					}
					if cause := context.Cause(ctx); !errors.Is(cause, activity.ErrCanceled) {
						t.Errorf("got cause %v, want ErrCanceled", cause)
					}
					time.Sleep(time.Minute) // cleaning up counts as progress
					if err := activity.Heartbeat(ctx, "cleaning"); !errors.Is(err, activity.ErrCanceled) {
						t.Errorf("got %v, want ErrCanceled again", err)
					}
					return tc.end(ctx)
				}))
				r.start(w)
				r.dispatch(beating)
				r.next(schemas.ReportStarted)
				if got := r.next(tc.kind); string(got.Details) != tc.details {
					t.Fatalf("got details %q, want %q", got.Details, tc.details)
				}
				r.settled("PCI")
				if diff := cmp.Diff([]string{"RUN.5.1 ", "RUN.5.1 ", "RUN.5.1 cleaning"}, book.said); diff != "" {
					t.Fatalf("heartbeats (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestGoneActivityReportsNothing(t *testing.T) {
	for _, first := range []schemas.BeatAnswer{{Gone: true}, {CancelRequested: true}} {
		bubble(t, func(t *testing.T, r *rig) {
			var book beatBook
			book.set(first)
			r.onBeat(book.beat)
			w := r.worker()
			activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
				if err := activity.Heartbeat(ctx, nil); err == nil {
					t.Error("got nil, want an error")
				}
				book.set(schemas.BeatAnswer{Gone: true})
				time.Sleep(time.Minute)
				if err := activity.Heartbeat(ctx, nil); !errors.Is(err, activity.ErrGone) {
					t.Errorf("got %v, want ErrGone", err)
				}
				asked := len(book.said)
				// It knows, so nothing is reported of what it has done either, whoever says it once more.
				r.tell(schemas.Control{V: schemas.Version, Kind: schemas.ControlCancel, Token: "RUN.5.1", Gone: true})
				time.Sleep(time.Minute)
				if err := activity.Heartbeat(ctx, nil); !errors.Is(err, activity.ErrGone) || len(book.said) != asked {
					t.Errorf("got %v and %d heartbeats more, want ErrGone and none", err, len(book.said)-asked)
				}
				return "done", nil
			}))
			r.start(w)
			r.dispatch(beating)
			r.next(schemas.ReportStarted)
			time.Sleep(5 * time.Minute)
			r.settled("PCI")
			r.quiet(time.Minute)
		})
	}
}

func TestUnansweredHeartbeatIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var book beatBook
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
			if err := activity.Heartbeat(ctx, "1"); err != nil {
				t.Errorf("got %v, want nil: nobody answered, which is not the activity's fault", err)
			}
			time.Sleep(3 * time.Second)
			r.onBeat(book.beat)
			time.Sleep(3 * time.Second)
			return "done", nil
		}))
		r.start(w)
		r.dispatch(beating)
		r.next(schemas.ReportStarted)
		r.next(schemas.ReportSuccess)
		if diff := cmp.Diff([]string{"RUN.5.1 1"}, book.said); diff != "" {
			t.Fatalf("heartbeats (-want +got):\n%s", diff)
		}
	})
}

func TestHeartbeatRefuses(t *testing.T) {
	if err := activity.Heartbeat(t.Context(), nil); !errors.Is(err, activity.ErrNoActivity) {
		t.Fatalf("got %v, want ErrNoActivity", err)
	}
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
			if err := activity.Heartbeat(ctx, strings.Repeat("x", 1<<20)); err == nil || !strings.Contains(err.Error(), "1048576 bytes") {
				t.Errorf("got %v, want a refusal of the size", err)
			}
			own, cancel := context.WithCancel(ctx)
			cancel()
			if err := activity.Heartbeat(own, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the end of the caller's own context", err)
			}
			return "done", nil
		}))
		r.start(w)
		r.dispatch()
		r.next(schemas.ReportSuccess)
	})
}
