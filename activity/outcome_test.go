package activity_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/schemas"
)

type charge struct {
	Card  string `json:"card"`
	Cents int    `json:"cents"`
}

func TestQuickWorkIsReportedInOneMessage(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker()
		activity.Register(w, "work", func(_ context.Context, in charge) (charge, error) {
			time.Sleep(20 * time.Millisecond)
			in.Cents *= 2
			return in, nil
		})
		r.start(w)
		seq := r.dispatch(func(t *schemas.ActivityTask) { t.Input = schemas.Payload(`{"card":"x","cents":21}`) })
		got := r.next(schemas.ReportSuccess)
		want := schemas.Report{
			Kind: schemas.ReportSuccess, Token: "RUN.5.1", Identity: "worker-1", Result: schemas.Payload(`{"card":"x","cents":42}`),
			TaskSequence: seq, Elapsed: schemas.Seconds(0.02),
		}
		if diff := cmp.Diff(want, got.Report, cmpopts.IgnoreFields(schemas.Report{}, "Nonce")); diff != "" {
			t.Fatalf("S1-10, S1-11: report (-want +got):\n%s", diff)
		}
		if got.Nonce == "" || got.subject != ns.ActOutcome(0, workflow, "PCI") {
			t.Fatalf("got nonce %q on %s, want one, on the task's report subject", got.Nonce, got.subject)
		}
		r.settled("PCI")
		r.quiet(time.Minute)
	})
}

// nilPointer begins what is told of an error that is a nil pointer: the classical mistake must not cost the whole process.
const nilPointer = "runtime error: invalid memory address or nil pointer dereference\n\ngoroutine "

// broken is an error whose method panics on nil.
type broken struct{ text string }

func (b *broken) Error() string { return b.text }

func TestOutcomes(t *testing.T) {
	boom := errors.New("boom")
	long := strings.Repeat("é", 300)
	for _, tc := range []struct {
		name    string
		input   string
		fn      func(context.Context, charge) (any, error)
		kind    schemas.ReportKind
		reason  string
		details string // or its beginning
		result  string
		final   bool
	}{
		{name: "nothing", fn: func(context.Context, charge) (any, error) { return nil, nil }, kind: schemas.ReportSuccess},
		{name: "text result", fn: func(context.Context, charge) (any, error) { return "ok", nil }, kind: schemas.ReportSuccess, result: `"ok"`},
		{name: "plain error", fn: func(context.Context, charge) (any, error) { return nil, boom }, kind: schemas.ReportFailed, reason: "boom", details: "boom"},
		{name: "reason", fn: func(context.Context, charge) (any, error) { return nil, activity.Fail("declined", "card 7") }, kind: schemas.ReportFailed, reason: "declined", details: "card 7"},
		{name: "wrapped reason", fn: func(context.Context, charge) (any, error) {
			return nil, fmt.Errorf("charge: %w", activity.Fail("declined", charge{Card: "c"}))
		}, kind: schemas.ReportFailed, reason: "declined", details: `{"card":"c","cents":0}`},
		{name: "final", fn: func(context.Context, charge) (any, error) {
			return nil, fmt.Errorf("charge: %w", activity.Final(activity.Fail("declined", "card 7")))
		}, kind: schemas.ReportFailed, reason: "declined", details: "card 7", final: true},
		{name: "final error without a reason", fn: func(context.Context, charge) (any, error) {
			return nil, activity.Final(boom)
		}, kind: schemas.ReportFailed, reason: "boom", details: "boom", final: true},
		{name: "empty final error", fn: func(context.Context, charge) (any, error) {
			return nil, activity.Final(errors.New(""))
		}, kind: schemas.ReportFailed, reason: "*errors.errorString", final: true},
		{name: "final details too large", fn: func(context.Context, charge) (any, error) {
			return nil, activity.Final(activity.Fail("declined", strings.Repeat("x", 1<<20)))
		}, kind: schemas.ReportFailed, reason: "declined", details: "the outcome has 10", final: true},
		{name: "final without an error", fn: func(context.Context, charge) (any, error) {
			return nil, activity.Final(nil)
		}, kind: schemas.ReportSuccess},
		{name: "canceled though nobody has asked", fn: func(context.Context, charge) (any, error) { return nil, activity.Canceled("page 3") }, kind: schemas.ReportFailed, reason: activity.ErrCanceled.Error(), details: "page 3"},
		{name: "error as details", fn: func(context.Context, charge) (any, error) { return nil, activity.Fail("declined", boom) }, kind: schemas.ReportFailed, reason: "declined", details: "boom"},
		{name: "details that JSON does not know", fn: func(context.Context, charge) (any, error) { return nil, activity.Fail("declined", func() {}) }, kind: schemas.ReportFailed, reason: "declined", details: "0x"},
		{name: "empty reason", fn: func(context.Context, charge) (any, error) { return nil, activity.Fail("", nil) }, kind: schemas.ReportFailed, reason: "failed"},
		{name: "long reason", fn: func(context.Context, charge) (any, error) { return nil, activity.Fail(long, nil) }, kind: schemas.ReportFailed, reason: strings.Repeat("é", 128)},
		{name: "long error", fn: func(context.Context, charge) (any, error) { return nil, errors.New(long) }, kind: schemas.ReportFailed, reason: strings.Repeat("é", 128), details: long},
		{name: "empty error", fn: func(context.Context, charge) (any, error) { return nil, errors.New("") }, kind: schemas.ReportFailed, reason: "*errors.errorString"},
		{name: "panic", fn: func(context.Context, charge) (any, error) { panic("ouch") }, kind: schemas.ReportFailed, reason: activity.ReasonPanic, details: "ouch\n\ngoroutine "},
		{name: "panic with an error that panics", fn: func(context.Context, charge) (any, error) { panic((*broken)(nil)) }, kind: schemas.ReportFailed, reason: activity.ReasonPanic, details: "<nil>\n\ngoroutine "},
		{name: "nil pointer in an error", fn: func(context.Context, charge) (any, error) { return nil, (*broken)(nil) }, kind: schemas.ReportFailed, reason: activity.ReasonPanic, details: nilPointer},
		{name: "nil pointer in an error that is unwrapped", fn: func(context.Context, charge) (any, error) { return nil, (*fs.PathError)(nil) }, kind: schemas.ReportFailed, reason: activity.ReasonPanic, details: nilPointer},
		{name: "nil failure", fn: func(context.Context, charge) (any, error) {
			return nil, fmt.Errorf("charge: %w", (*activity.Failure)(nil))
		}, kind: schemas.ReportFailed, reason: activity.ReasonPanic, details: nilPointer},
		{name: "end of the goroutine", fn: func(context.Context, charge) (any, error) { runtime.Goexit(); return nil, nil }, kind: schemas.ReportFailed, reason: activity.ReasonPanic, details: "the function ended"},
		{name: "bad input: body", input: `{"cents":"many"}`, fn: func(context.Context, charge) (any, error) { return nil, nil }, kind: schemas.ReportFailed, reason: activity.ReasonBadInput, details: "payload is not the expected JSON"},
		{name: "result that JSON does not know", fn: func(context.Context, charge) (any, error) { return make(chan int), nil }, kind: schemas.ReportFailed, reason: activity.ReasonBadResult, details: "payload"},
		{name: "result too large", fn: func(context.Context, charge) (any, error) { return strings.Repeat("x", 1<<20), nil }, kind: schemas.ReportFailed, reason: activity.ReasonTooLarge, details: "the outcome has 10"},
		{name: "result that leaves no room for a record", fn: func(context.Context, charge) (any, error) { return strings.Repeat("x", 1<<20-32<<10), nil }, kind: schemas.ReportFailed, reason: activity.ReasonTooLarge, details: "the outcome has 10"},
		{name: "details too large", fn: func(context.Context, charge) (any, error) {
			return nil, activity.Fail("declined", strings.Repeat("x", 1<<20))
		}, kind: schemas.ReportFailed, reason: "declined", details: "the outcome has 10"},
		{name: "canceled of its own accord", fn: func(context.Context, charge) (any, error) { return nil, activity.ErrCanceled }, kind: schemas.ReportFailed, reason: activity.ErrCanceled.Error(), details: activity.ErrCanceled.Error()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.takePayloads(300 << 10)
				r.logger.SetFormatter(&logrus.JSONFormatter{}) // as under drover --json: it calls the methods of what it logs
				w := r.worker()
				activity.Register(w, "work", tc.fn)
				r.start(w)
				r.dispatch(func(t *schemas.ActivityTask) { t.Input = schemas.Payload(tc.input) })
				got := r.next(tc.kind)
				if got.Reason != tc.reason {
					t.Fatalf("got reason %q, want %q", got.Reason, tc.reason)
				}
				if !strings.HasPrefix(string(got.Details), tc.details) || tc.details == "" && len(got.Details) > 0 {
					t.Fatalf("got details %.80q, want %q", got.Details, tc.details)
				}
				if got.Final != tc.final {
					t.Fatalf("got final %v, want %v", got.Final, tc.final)
				}
				if string(got.Result) != tc.result {
					t.Fatalf("got result %.80q, want %q", got.Result, tc.result)
				}
				r.settled("PCI")
			})
		})
	}
}

// A stream may take less than the server does. What it refuses for its size it would refuse for ever.
func TestOutcomeThatIsTooLargeForItsStream(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		in, err := r.conn.JetStream().Stream(t.Context(), ns.StreamIn(0))
		if err != nil {
			t.Fatal(err)
		}
		config := in.CachedInfo().Config
		config.MaxMsgSize = 10_000
		if _, err := r.conn.JetStream().UpdateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { return strings.Repeat("x", 20_000), nil }))
		r.start(w)
		r.dispatch()
		if got := r.next(schemas.ReportFailed); got.Reason != activity.ReasonTooLarge {
			t.Errorf("got reason %q, want %q", got.Reason, activity.ReasonTooLarge)
		}
		r.settled("PCI")
	})
}

// Outcomes that are a little too large for their owner's subject go to the inbox, and give back the turn that they had for the other way: else
// the next ones would wait for it for ever.
func TestManyOutcomesTooLargeToHandOver(t *testing.T) {
	const tasks = 20
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { return strings.Repeat("x", schemas.PayloadThreshold-2), nil }))
		r.start(w)
		for n := range tasks {
			r.dispatch(func(t *schemas.ActivityTask) { t.Token = fmt.Sprint("RUN.5.", n) })
		}
		for range tasks {
			if got := r.next(schemas.ReportSuccess); len(got.Result) != schemas.PayloadThreshold {
				t.Fatalf("got a result of %d bytes, want %d", len(got.Result), schemas.PayloadThreshold)
			}
		}
		r.settled("PCI")
	})
}

// What an activity has left running by its context ends with it.
func TestContextEndsWithTheActivity(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		ended := make(chan error, 1)
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
			context.AfterFunc(ctx, func() { ended <- ctx.Err() })
			return "done", nil
		}))
		r.start(w)
		r.dispatch()
		r.next(schemas.ReportSuccess)
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want context.Canceled", err)
			}
		case <-time.After(time.Second):
			t.Error("a second after its outcome the context of an activity goes on")
		}
	})
}

func TestPayloadsAreTakenAsTheyAre(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker()
		activity.Register(w, "payload", func(_ context.Context, in schemas.Payload) (schemas.Payload, error) {
			return append(schemas.Payload("p:"), in...), nil
		})
		activity.Register(w, "bytes", func(_ context.Context, in []byte) ([]byte, error) { return append([]byte("b:"), in...), nil })
		activity.Register(w, "none", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil })
		r.start(w)
		for _, tc := range []struct{ typ, in, want string }{
			{"payload", "not JSON \xff", "p:not JSON \xff"}, {"bytes", `"aGk="`, `b:"aGk="`}, {"none", "ignored", ""},
		} {
			r.dispatch(func(t *schemas.ActivityTask) { t.Type, t.Input = tc.typ, schemas.Payload(tc.in) })
			if got := r.next(schemas.ReportSuccess); string(got.Result) != tc.want {
				t.Fatalf("%s: got result %q, want %q", tc.typ, got.Result, tc.want)
			}
		}
	})
}

func TestSlowWorkReportsItsStart(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { time.Sleep(time.Minute); return "done", nil }))
		r.start(w)
		began := time.Now()
		seq := r.dispatch()
		got := r.next(schemas.ReportStarted)
		want := schemas.Report{
			Kind: schemas.ReportStarted, Token: "RUN.5.1", Identity: "worker-1", TaskSequence: seq, Elapsed: schemas.Seconds(0.05), Nonce: got.Nonce,
		}
		if diff := cmp.Diff(want, got.Report); diff != "" {
			t.Fatalf("S1-10: report (-want +got):\n%s", diff)
		}
		if after := got.at.Sub(began); got.Nonce == "" || after != 50*time.Millisecond {
			t.Fatalf("got the start after %v with nonce %q, want 50ms and one", after, got.Nonce)
		}
		got = r.next(schemas.ReportSuccess)
		want.Kind, want.Result, want.Elapsed = schemas.ReportSuccess, schemas.Payload(`"done"`), schemas.Seconds(60)
		if diff := cmp.Diff(want, got.Report); diff != "" {
			t.Fatalf("report after a start (-want +got):\n%s", diff)
		}
	})
}

func TestInfo(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		infos := make(chan activity.TaskInfo, 1)
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(ctx context.Context) (struct{}, error) {
			info := activity.Info(ctx)
			if dl, ok := ctx.Deadline(); !ok || !dl.Equal(info.Deadline) {
				t.Errorf("got context deadline %v, want that of the info, %v", dl, info.Deadline)
			}
			infos <- info
			return struct{}{}, nil
		}))
		r.start(w)
		time.Sleep(time.Second)
		now := time.Now()
		r.dispatch(func(t *schemas.ActivityTask) {
			t.TypeVersion, t.Heartbeat, t.CloseBy = "2", schemas.Seconds(9), schemas.At(now.Add(time.Minute))
		})
		want := activity.TaskInfo{
			Namespace: "default", WorkflowID: workflow, Run: "RUN", WorkflowType: "order", ActivityID: "a1", Type: "work", TypeVersion: "2", List: "PCI",
			Attempt: 1, ScheduledAt: now, StartedAt: now, Deadline: now.Add(time.Minute), Heartbeat: 9 * time.Second, IdempotencyKey: "RUN.5.0", Fence: 3,
		}
		if diff := cmp.Diff(want, <-infos); diff != "" {
			t.Fatalf("info (-want +got):\n%s", diff)
		}
	})
	if diff := cmp.Diff(activity.TaskInfo{}, activity.Info(t.Context())); diff != "" {
		t.Fatalf("outside an activity (-want +got):\n%s", diff)
	}
}
