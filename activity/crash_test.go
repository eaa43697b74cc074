package activity_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// breakOnce breaks a connection after the n-th publish of a report.
func breakOnce(n int) func(string, []byte) cutwire.Verdict {
	return func(subject string, _ []byte) cutwire.Verdict {
		if strings.HasPrefix(subject, "drover.default.in.") {
			if n--; n == 0 {
				return cutwire.Break
			}
		}
		return cutwire.Pass
	}
}

// TestBrokenConnection breaks the connection after a report. Whether its acknowledgement still comes through is a matter
// of luck, and so is that of the task; the activity runs once all the same.
func TestBrokenConnection(t *testing.T) {
	for _, tc := range []struct {
		name  string
		takes time.Duration
		nth   int
	}{
		{"after the outcome of quick work", 0, 1}, {"after a start", time.Minute, 1}, {"after the outcome of slow work", time.Minute, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				ran := 0
				w, wire := r.cutWorker()
				activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) {
					ran++
					time.Sleep(tc.takes)
					return "done", nil
				}))
				wire.Judge(breakOnce(tc.nth))
				r.start(w)
				r.dispatch()
				nonces := map[string]bool{}
				succeeded := false
				for end := time.After(3 * time.Minute); ; {
					select {
					case got := <-r.reports:
						switch got.Kind {
						case schemas.ReportBegin: // it has ended, or this would be a second attempt
							if !succeeded || !got.Redelivered {
								t.Fatalf("got question %+v, want none before the outcome", got.Report)
							}
							r.answer(got.ReplyTo, schemas.Permission{Nonce: got.Nonce, Reason: "closed"})
						case schemas.ReportSuccess:
							succeeded = true
							nonces[got.Nonce] = true
						default:
							if nonces[got.Nonce] = true; succeeded || got.Kind != schemas.ReportStarted {
								t.Fatalf("got %s after the outcome", got.Kind)
							}
						}
						continue
					case <-end:
					}
					break
				}
				r.settled("PCI")
				delete(nonces, "") // of an outcome whose start is known to be stored
				if ran != 1 || !succeeded || len(nonces) != 1 {
					t.Fatalf("it ran %d times, succeeded %v, under nonces %v, want once and one", ran, succeeded, nonces)
				}
			})
		})
	}
}

func TestLostAcknowledgementOfAQuestion(t *testing.T) {
	t.Run("P-7", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			w, wire := r.cutWorker()
			activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { return "done", nil }))
			wire.Judge(breakOnce(1))
			r.start(w)
			r.dispatch(notIdempotent)
			first, second := r.next(schemas.ReportBegin), r.next(schemas.ReportBegin)
			if diff := cmp.Diff(first.Report, second.Report); diff != "" {
				t.Fatalf("the repeat differs (-first +second):\n%s", diff)
			}
			r.answer(second.ReplyTo, schemas.Permission{Nonce: second.Nonce, Go: true})
			r.next(schemas.ReportSuccess)
			r.settled("PCI")
			r.quiet(time.Minute)
		})
	})
}

// TestWorkerDies kills a worker while its activity runs. The next one asks, and is told what the history says.
func TestWorkerDies(t *testing.T) {
	t.Run("P-7", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			w, wire := r.cutWorker(func(o *activity.Options) { o.DrainTimeout = time.Second })
			activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }))
			r.start(w)
			seq := r.dispatch()
			started := r.next(schemas.ReportStarted)
			time.Sleep(time.Minute)
			wire.Kill()
			died := time.Now()
			other := r.worker(func(o *activity.Options) { o.Identity = "worker-2" })
			activity.Register(other, "work", ignoreIn(func(context.Context) (string, error) { return "done", nil }))
			r.start(other)
			q := r.next(schemas.ReportBegin)
			if wait := q.at.Sub(died); wait > ackWait || q.TaskSequence != seq || !q.Redelivered || q.Nonce == started.Nonce || q.Identity != "worker-2" {
				t.Fatalf("got question %+v after %v, want that of a redelivery within %v", q.Report, wait, ackWait)
			}
			r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Go: true, Attempt: 2, Token: "RUN.5.2"})
			if got := r.next(schemas.ReportSuccess); got.Token != "RUN.5.2" {
				t.Fatalf("got token %q, want that of the second attempt", got.Token)
			}
			r.settled("PCI")
		})
	})
}
