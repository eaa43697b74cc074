package activity_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// tell publishes to the control subject of the rig's workers.
func (r *rig) tell(v any) {
	r.t.Helper()
	body, err := json.Marshal(v)
	if err == nil {
		err = r.conn.Publish(ns.Control("worker-1"), nil, body)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// An activity that never heartbeats is told at once, and decides itself how it ends.
func TestCancelIsPushed(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(ctx context.Context) (string, error)
		want schemas.ReportKind
		text string // details of the report, or its result
	}{
		{"it returns the cause", func(ctx context.Context) (string, error) { return "", context.Cause(ctx) }, schemas.ReportCanceled, ""},
		{"it returns the context's error", func(ctx context.Context) (string, error) { return "", ctx.Err() }, schemas.ReportCanceled, ""},
		{"it says where it stopped", func(context.Context) (string, error) { return "", activity.Canceled("page 3") }, schemas.ReportCanceled, "page 3"},
		{"it succeeds all the same", func(context.Context) (string, error) { return "done", nil }, schemas.ReportSuccess, `"done"`},
		{"it fails", func(context.Context) (string, error) { return "", activity.Fail("broken", "x") }, schemas.ReportFailed, "x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				w := r.worker()
				activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
					<-ctx.Done()
					if cause := context.Cause(ctx); !errors.Is(cause, activity.ErrCanceled) {
						t.Errorf("got cause %v, want ErrCanceled", cause)
					}
					return tc.end(ctx)
				}))
				r.start(w)
				r.dispatch()
				r.next(schemas.ReportStarted)
				began := time.Now()
				r.tell(schemas.Control{V: schemas.Version, Kind: schemas.ControlCancel, Token: "RUN.5.1", Reason: "no longer needed"})
				got := r.next(tc.want)
				if text := string(got.Result) + string(got.Details); text != tc.text {
					t.Fatalf("got %q, want %q", text, tc.text)
				}
				if took := time.Since(began); took > 10*time.Millisecond {
					t.Fatalf("it took %v, want it at once", took)
				}
				r.settled("PCI")
			})
		})
	}
}

// An activity that never heartbeats is told that nobody waits for it any more, also while it cleans up. What it says then is no news, but what
// it has done.
func TestGoneIsPushed(t *testing.T) {
	for _, tc := range []struct {
		name  string
		asked bool // its decider had asked for its end before
		end   func(ctx context.Context) (string, error)
		done  bool
		quick bool // before its start is told
	}{
		{"it obeys", false, func(ctx context.Context) (string, error) { return "", context.Cause(ctx) }, false, false},
		{"it obeys at once", false, func(ctx context.Context) (string, error) { return "", context.Cause(ctx) }, false, true},
		{"it fails", false, func(context.Context) (string, error) { return "", activity.Fail("broken", nil) }, false, false},
		{"it succeeds", false, func(context.Context) (string, error) { return "done", nil }, true, false},
		{"it cleans up", true, func(context.Context) (string, error) { return "", activity.Canceled("page 3") }, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				w := r.worker()
				activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
					<-ctx.Done()
					if cause := context.Cause(ctx); !tc.asked && !errors.Is(cause, activity.ErrGone) {
						t.Errorf("got cause %v, want ErrGone", cause)
					}
					if !tc.quick {
						time.Sleep(time.Second)
					}
					return tc.end(ctx)
				}))
				r.start(w)
				r.dispatch()
				if tc.quick {
					time.Sleep(10 * time.Millisecond)
				} else {
					r.next(schemas.ReportStarted)
				}
				for _, gone := range []bool{!tc.asked, true} {
					r.tell(schemas.Control{V: schemas.Version, Kind: schemas.ControlCancel, Token: "RUN.5.1", Gone: gone})
				}
				if tc.done {
					r.next(schemas.ReportSuccess)
				}
				r.quiet(10 * time.Second)
				r.settled("PCI")
			})
		})
	}
}

// A heartbeat that nobody answers does not keep an activity that is to end, nor one that waits no longer.
func TestHeartbeatEndsWithItsContext(t *testing.T) {
	for _, tc := range []struct {
		name  string
		limit time.Duration
		want  error
	}{{"canceled", time.Hour, activity.ErrCanceled}, {"its own limit", time.Second, context.DeadlineExceeded}} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				if _, err := r.conn.Subscribe(ns.AllBeats(0), "", func(natsconn.Msg) {}); err != nil {
					t.Fatal(err)
				}
				w := r.worker()
				activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
					ctx, cancel := context.WithTimeout(ctx, tc.limit)
					defer cancel()
					began := time.Now()
					if err := activity.Heartbeat(ctx, nil); !errors.Is(err, tc.want) || time.Since(began) > 2*time.Second {
						t.Errorf("got %v after %v, want %v within 2s", err, time.Since(began), tc.want)
					}
					return "done", nil
				}))
				r.start(w)
				r.dispatch()
				r.next(schemas.ReportStarted)
				time.Sleep(time.Second)
				r.tell(schemas.Control{V: schemas.Version, Kind: schemas.ControlCancel, Token: "RUN.5.1"})
				r.next(schemas.ReportSuccess)
			})
		})
	}
}

// A worker is not put off by what is meant for others or makes no sense, and a cancel reaches one attempt alone.
func TestControlIsMeantForOneAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
			select {
			case <-ctx.Done():
				return "", activity.Heartbeat(ctx, nil) // says the same, although nobody answers heartbeats here
			case <-time.After(time.Minute):
				return "done", nil
			}
		}))
		r.start(w)
		r.dispatch()
		r.dispatch(func(t *schemas.ActivityTask) { t.Token = "RUN.6.1" })
		r.next(schemas.ReportStarted)
		r.next(schemas.ReportStarted)
		r.dispatch(func(t *schemas.ActivityTask) { t.Token, t.NotIdempotent = "RUN.7.1", true })
		q := r.next(schemas.ReportBegin) // its attempt has not begun
		if err := r.conn.Publish(ns.Control("worker-1"), nil, []byte("{")); err != nil {
			t.Fatal(err)
		}
		r.tell(schemas.Control{Kind: "dance", Token: "RUN.5.1"})
		r.tell(schemas.Control{Kind: schemas.ControlCancel, Token: "RUN.7.1"})
		r.tell(schemas.Control{Kind: schemas.ControlCancel})
		r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Reason: "canceled"})
		r.quiet(30 * time.Second)
		r.tell(schemas.Control{Kind: schemas.ControlCancel, Token: "RUN.6.1"})
		if got := r.next(schemas.ReportCanceled); got.Token != "RUN.6.1" {
			t.Fatalf("got the end of %s, want RUN.6.1", got.Token)
		}
		if got := r.next(schemas.ReportSuccess); got.Token != "RUN.5.1" {
			t.Fatalf("got the end of %s, want RUN.5.1", got.Token)
		}
	})
}

// The next attempt goes on where the last heartbeat of an earlier one was.
func TestResume(t *testing.T) {
	type page struct{ Page int }
	for _, tc := range []struct {
		name       string
		task, with schemas.Payload
		want       page
		ok, failed bool
	}{
		{"first attempt", nil, nil, page{}, false, false},
		{"after a retry", schemas.Payload(`{"Page":3}`), nil, page{3}, true, false},
		{"after the loss of a worker", schemas.Payload(`{"Page":3}`), schemas.Payload(`{"Page":4}`), page{4}, true, false},
		{"of another form", schemas.Text("page three"), nil, page{}, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				w := r.worker()
				activity.Register(w, "work", ignoreIn(func(ctx context.Context) (struct{}, error) {
					got, ok, err := activity.Resume[page](ctx)
					if got != tc.want || ok != tc.ok || (err != nil) != tc.failed {
						t.Errorf("got %v, %v, %v, want %v, %v", got, ok, err, tc.want, tc.ok)
					}
					return struct{}{}, nil
				}))
				r.start(w)
				r.dispatch(func(t *schemas.ActivityTask) { t.NotIdempotent, t.HeartbeatDetails = true, tc.task })
				q := r.next(schemas.ReportBegin)
				r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Go: true, Token: "RUN.5.2", Attempt: 2, HeartbeatDetails: tc.with})
				r.next(schemas.ReportSuccess)
			})
		})
	}
	if _, ok, err := activity.Resume[page](t.Context()); ok || err != nil {
		t.Fatalf("got %v, %v outside an activity, want nothing", ok, err)
	}
}
