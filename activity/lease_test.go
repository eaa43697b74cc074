package activity_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// inbox makes the inbox stream anew and reads it into a channel.
func (r *rig) inbox(into chan<- schemas.Report) {
	r.t.Helper()
	r.ensure()
	reader, err := r.conn.Read(r.t.Context(), ns.StreamIn(0), natsconn.ReadOptions{}, func(m natsconn.Stored) {
		var got schemas.Report
		if err := schemas.Unmarshal(m.Data, &got); err != nil {
			r.t.Error(err)
		}
		into <- got
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { reader.Close(); <-reader.Done() })
}

func TestInProgressKeepsTheLease(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var mu sync.Mutex
		ran := 0
		for range 2 {
			w := r.worker()
			activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) {
				mu.Lock()
				ran++
				mu.Unlock()
				time.Sleep(20 * ackWait)
				return "done", nil
			}))
			r.start(w)
		}
		r.dispatch()
		r.next(schemas.ReportStarted)
		r.next(schemas.ReportSuccess)
		r.settled("PCI")
		r.quiet(time.Minute)
		if ran != 1 {
			t.Fatalf("it ran %d times, want once: the lease is extended beyond AckWait", ran)
		}
	})
}

func TestOutcomeIsRepeatedUntilItIsStored(t *testing.T) {
	for _, takes := range []time.Duration{0, time.Second} { // the start of the latter is told, in vain, before
		t.Run(takes.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.remove(ns.StreamIn(0))
				ran := 0
				w := r.worker()
				activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { ran++; time.Sleep(takes); return "done", nil }))
				r.start(w)
				r.dispatch()
				time.Sleep(3 * ackWait)
				reports := make(chan schemas.Report, 10)
				r.inbox(reports)
				got := <-reports
				if got.Kind != schemas.ReportSuccess || got.Nonce == "" || got.TaskSequence != 1 || got.Elapsed.Std() < max(takes, 1) {
					t.Fatalf("got %+v, want a success that carries its start", got)
				}
				r.settled("PCI")
				if ran != 1 || len(reports) > 0 {
					t.Fatalf("it ran %d times and was reported %d times more, want once and no more", ran, len(reports))
				}
				if n := r.logged(logrus.WarnLevel, "a report was not stored; trying again"); takes == 0 && n != 1 {
					t.Fatalf("got %d warnings, want one, however often it is tried", n)
				}
			})
		})
	}
}

// A question that cannot be stored for a while, as during an election, is told of once, and not with each of its tries.
func TestQuestionThatIsNotStoredIsToldOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.remove(ns.StreamIn(0))
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { return "done", nil }))
		r.start(w)
		r.dispatch(func(t *schemas.ActivityTask) { t.NotIdempotent = true })
		time.Sleep(3 * ackWait)
		if n := r.logged(logrus.WarnLevel, "a question was not stored; asking again"); n != 1 {
			t.Errorf("got %d warnings, want one, however often it is asked", n)
		}
		reports := make(chan schemas.Report, 10)
		r.inbox(reports)
		if got := <-reports; got.Kind != schemas.ReportBegin {
			t.Errorf("got %+v, want the question", got)
		}
	})
}

func TestOutcomeThatNobodyWantsAnyMoreIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.remove(ns.StreamIn(0))
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { return "done", nil }))
		r.start(w)
		r.dispatch(func(t *schemas.ActivityTask) { t.StartToClose = schemas.Seconds(30) })
		time.Sleep(2 * time.Minute)
		if n := r.logged(logrus.ErrorLevel, "an outcome could not be stored; the task goes back to its list"); n != 1 {
			t.Fatalf("got %d errors logged, want one", n)
		}
		reports := make(chan schemas.Report, 10)
		r.inbox(reports)
		if got := <-reports; got.Kind != schemas.ReportBegin || !got.Redelivered {
			t.Fatalf("got %s, want the question of a redelivery: nothing is lost", got.Kind)
		}
	})
}

// TestOutcomeNeverOvertakesTheStart ends activities around the moment at which their start is reported.
func TestOutcomeNeverOvertakesTheStart(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		const n = 200
		w := r.worker()
		activity.Register(w, "work", func(_ context.Context, d time.Duration) (struct{}, error) { time.Sleep(d); return struct{}{}, nil })
		r.start(w)
		for i := range n {
			r.dispatch(func(t *schemas.ActivityTask) {
				t.Token, t.Input = fmt.Sprintf("RUN.%d.1", i), schemas.Payload(fmt.Sprint(int(50*time.Millisecond)+(i-n/2)*1000))
			})
		}
		begun, ended := map[string]bool{}, map[string]bool{}
		for len(ended) < n {
			got := <-r.reports
			switch {
			case got.Kind == schemas.ReportStarted && !ended[got.Token]:
				begun[got.Token] = true
			case got.Kind == schemas.ReportSuccess && !ended[got.Token] && got.Nonce != "":
				ended[got.Token] = true
			default:
				t.Fatalf("got %s of %s with nonce %q, begun %v, ended %v", got.Kind, got.Token, got.Nonce, begun[got.Token], ended[got.Token])
			}
		}
		if len(begun) == 0 || len(begun) == n {
			t.Fatalf("got %d starts of %d, want some", len(begun), n)
		}
	})
}

func TestTimeouts(t *testing.T) {
	for _, tc := range []struct {
		name  string
		edit  func(*schemas.ActivityTask)
		cause error
		after time.Duration
	}{
		{"S1-13, S1-32/start to close", func(t *schemas.ActivityTask) { t.StartToClose = schemas.Seconds(60) }, activity.ErrStartToClose, time.Minute},
		{"S1-32/schedule to close bounds the whole", func(t *schemas.ActivityTask) {
			t.StartToClose, t.CloseBy = schemas.Seconds(60), schemas.At(time.Now().Add(30*time.Second))
		}, activity.ErrCloseBy, 30 * time.Second},
		{"shorter than the report of a start", func(t *schemas.ActivityTask) { t.StartToClose = schemas.Seconds(0.01) }, activity.ErrStartToClose, 10 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				began := time.Now()
				var cause error
				var after time.Duration
				w := r.worker()
				activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
					<-ctx.Done()
					cause, after = context.Cause(ctx), time.Since(began)
					return "", ctx.Err()
				}))
				r.start(w)
				r.dispatch(tc.edit)
				// The service writes the timeout; for that it must know of the start.
				r.next(schemas.ReportStarted)
				time.Sleep(5 * time.Minute)
				r.settled("PCI")
				r.quiet(time.Minute)
				if !errors.Is(cause, tc.cause) || after != tc.after {
					t.Fatalf("got cause %v after %v, want %v after %v", cause, after, tc.cause, tc.after)
				}
			})
		})
	}
}

func TestSuccessLaterItsLimitIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "done", nil
		}))
		r.start(w)
		r.dispatch()
		r.next(schemas.ReportStarted)
		r.next(schemas.ReportSuccess)
	})
}

// What is over by the estimate of the server's clock its owner is asked for: that clock may have been set back, or have been another's.
func TestTaskWhoseTimeIsOver(t *testing.T) {
	for _, offered := range []bool{false, true} {
		for _, wanted := range []bool{false, true} {
			t.Run(fmt.Sprintf("offered %v, wanted %v", offered, wanted), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					var left time.Duration
					ran := false
					w := r.worker()
					activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
						info := activity.Info(ctx)
						if info.IdempotencyKey == "late" {
							ran = true
						}
						if info.Attempt != 1 {
							t.Errorf("got attempt %d, want that of the task: the owner has named no other", info.Attempt)
						}
						end, _ := ctx.Deadline()
						left = time.Until(end)
						return "", nil
					}))
					r.start(w)
					time.Sleep(time.Second) // until it hears
					r.dispatch()            // by the server's clock before it is set back
					r.next(schemas.ReportSuccess)
					late := func(t *schemas.ActivityTask) {
						t.Token, t.IdempotencyKey, t.ScheduledAt = "RUN.6.1", "late", schemas.At(time.Now().Add(-time.Hour))
						t.CloseBy = t.ScheduledAt.Add(schemas.Seconds(60))
					}
					if offered {
						r.offer(late)
					} else {
						r.dispatch(late)
					}
					q := r.next(schemas.ReportBegin)
					r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Go: wanted, Reason: "over"})
					if wanted {
						r.next(schemas.ReportSuccess)
					}
					r.settled("PCI")
					r.quiet(time.Minute)
					if ran != wanted || ran && left != time.Minute {
						t.Errorf("it ran: %v, with %v left; want %v and a minute", ran, left, wanted)
					}
				})
			})
		}
	}
}

func TestUnknownTypeGoesBackToTheList(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		old := r.worker()
		activity.Register(old, "other", ignoreIn(func(context.Context) (string, error) { return "", nil }))
		stop := r.start(old)
		r.dispatch()
		r.dispatch()
		time.Sleep(5 * time.Minute)
		r.quiet(time.Second)
		const text = "this worker has no function for this type of activity: its tasks go back to the list for other workers; " +
			"if none has one, implement it here, or run a worker that does"
		if n := r.logged(logrus.WarnLevel, text); n != 1 {
			t.Fatalf("got %d warnings, want one for the type", n)
		}
		if n := r.left("PCI"); n != 2 {
			t.Fatalf("got %d tasks on the list, want 2", n)
		}
		fresh := r.worker()
		activity.Register(fresh, "work", ignoreIn(func(context.Context) (string, error) { return "", nil }))
		r.start(fresh)
		if err := stop(); err != nil {
			t.Fatalf("got %v, want a clean end", err)
		}
		for done := 0; done < 2; {
			switch got := <-r.reports; got.Kind {
			case schemas.ReportBegin:
				r.answer(got.ReplyTo, schemas.Permission{Nonce: got.Nonce, Go: true})
			case schemas.ReportSuccess:
				done++
			default:
				t.Fatalf("got %s, want a question or a success", got.Kind)
			}
		}
		r.settled("PCI")
	})
}

func TestUndecodableTaskIsBuried(t *testing.T) {
	for _, tc := range []struct{ name, body, details string }{
		{"empty", "", "empty"},
		{"no JSON", "hello", "unknown version"},
		{"broken JSON", `{"type":`, "malformed"},
		{"another version", `{"v":99,"type":"work","token":"t","report":"r"}`, `"v" is 99`},
		{"wrong types", `{"type":7}`, "malformed"},
		{"hostile msgpack", "\x01\xdd\xff\xff\xff\xff", "malformed"},
		{"no type", `{"token":"t","report":"r"}`, `"type" is missing`},
		{"no token", `{"type":"work","report":"r"}`, `"token" is missing`},
		{"no report", `{"type":"work","token":"t"}`, `"report" is missing`},
		{"report to a wildcard", `{"type":"work","token":"t","report":"drover.>"}`, "no subject"},
		{"beat with a line break", `{"type":"work","token":"t","report":"r","beat":"a\r\nPUB x"}`, "no subject"},
	} {
		t.Run("bad input: body/"+tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				w := r.worker()
				activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { return "", nil }))
				r.start(w)
				seq := r.put("PCI", []byte(tc.body))
				r.settled("PCI")
				m, err := r.conn.LastBySubject(t.Context(), ns.StreamDead(), fmt.Sprintf("drover.default.dead.undecodable-task.tasks.PCI.*.%d", seq))
				if err != nil {
					t.Fatal(err)
				}
				var letter schemas.DeadLetter
				if err := schemas.Unmarshal(m.Data, &letter); err != nil {
					t.Fatal(err)
				}
				if string(letter.Body) != tc.body || letter.Subject != ns.Task("PCI", 0) || !strings.Contains(letter.Details, tc.details) || letter.Time == 0 {
					t.Fatalf("got letter %+v, want the task and %q", letter, tc.details)
				}
				r.dispatch()
				r.next(schemas.ReportSuccess) // the worker lives
			})
		})
	}
}

// Somebody has told the consumer to deliver headers alone. The tasks are whole in their stream, and done once the list was opened again.
func TestTasksWithoutBodies(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		defer r.answerTaskLists("PCI", func() { r.openList("PCI") })()
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { return "done", nil }))
		r.start(w)
		time.Sleep(time.Second)
		c, err := r.conn.JetStream().Consumer(t.Context(), ns.StreamTasks("PCI"), subject.Consumer)
		if err != nil {
			t.Fatal(err)
		}
		edited := c.CachedInfo().Config
		edited.HeadersOnly = true
		if _, err := r.conn.JetStream().UpdateConsumer(t.Context(), ns.StreamTasks("PCI"), edited); err != nil {
			t.Fatal(err)
		}
		r.dispatch()
		q := r.next(schemas.ReportBegin) // it is not the first delivery
		r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Go: true})
		r.next(schemas.ReportSuccess)
		r.settled("PCI")
		if n := r.logged(logrus.WarnLevel, "a consumer of the list delivers headers alone (headers_only): its tasks stay there, and the list is opened again, which takes that back"); n != 1 {
			t.Errorf("got %d warnings, want one", n)
		}
	})
}

func TestUndecodableTaskStaysUntilItIsBuried(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.remove(ns.StreamDead())
		r.start(r.worker())
		r.put("PCI", []byte("hello"))
		time.Sleep(time.Minute)
		if n := r.left("PCI"); n != 1 {
			t.Fatalf("got %d tasks on the list, want 1: nothing is dropped in silence", n)
		}
		r.ensure()
		time.Sleep(time.Minute)
		r.settled("PCI")
	})
}
