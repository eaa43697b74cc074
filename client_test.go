package drover_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// Bad input: options and addresses. The error names the field or the address and says what to do.
func TestConnectRefuses(t *testing.T) {
	t.Setenv("NATS_URL", "nats://127.0.0.1:1")
	for _, tt := range []struct {
		name string
		o    *drover.Options
		is   error
		want []string
	}{
		{"nobody listens", nil, drover.ErrUnavailable, []string{"nats://127.0.0.1:1", "drover server"}},
		{"password is not shown", &drover.Options{URL: "nats://me:geheim@127.0.0.1:1"}, drover.ErrUnavailable, []string{"127.0.0.1:1"}},
		{"namespace", &drover.Options{Namespace: "a b"}, drover.ErrInvalid, []string{"Options.Namespace", "letters"}},
		{"namespace with the infix", &drover.Options{Namespace: "a-tasks-b"}, drover.ErrInvalid, []string{"-tasks-"}},
		{"timeout", &drover.Options{Timeout: -time.Second}, drover.ErrInvalid, []string{"Options.Timeout", "15s"}},
		{"two ways to log in", &drover.Options{Token: "t", User: "u"}, drover.ErrInvalid, []string{"only one of"}},
		{"connection and address", &drover.Options{Conn: &nats.Conn{}, URL: "nats://x"}, drover.ErrInvalid, []string{"Options.Conn"}},
		{"connection and user", &drover.Options{Conn: &nats.Conn{}, User: "u"}, drover.ErrInvalid, []string{"Options.Conn"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := drover.Connect(t.Context(), tt.o)
			if e := wantError(t, err, tt.is); e.Op != "connect" {
				t.Fatalf("got Op %q, want connect", e.Op)
			}
			for _, want := range append(tt.want, "drover: connect") {
				if !strings.Contains(err.Error(), want) {
					t.Fatalf("got %q, want it to hold %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "geheim") {
				t.Fatalf("got %q, which holds the password", err)
			}
		})
	}
}

func TestOptionsPrintWithoutSecrets(t *testing.T) {
	t.Setenv("NATS_URL", "nats://127.0.0.1:4333")
	s := drover.Options{User: "joe", Password: "geheim"}.String()
	for _, want := range []string{"namespace=default", "timeout=15s", "127.0.0.1:4333", "joe"} {
		if !strings.Contains(s, want) {
			t.Fatalf("got %q, want it to hold %q", s, want)
		}
	}
	if strings.Contains(s, "geheim") {
		t.Fatalf("got %q, which holds the password", s)
	}
}

func TestStartSendsWhatItWasGiven(t *testing.T) {
	c, s := newService(t, drover.Options{Name: "shop:1"})
	var got schemas.StartRequest
	on(s, "start", func(_ int, req schemas.StartRequest) any {
		got = req
		return schemas.StartResponse{WorkflowID: req.WorkflowID, Run: req.Run, Started: true}
	})
	run, err := c.Start(t.Context(), "order", map[string]int{"n": 1}, &drover.StartOptions{
		ID: "order.17/é", TypeVersion: "2", Timeout: time.Hour, DecisionTimeout: 5 * time.Second, DecisionWait: drover.Unlimited,
		Priority: 3, ActivityDefaults: &schemas.ActivityDefaults{List: "PCI"}, ChildPolicy: schemas.ChildAbandon,
		Tags: []string{"a"}, Attributes: map[string]string{"k": "v"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ulid.ParseStrict(got.Run); err != nil {
		t.Fatalf("run id %q: %v", got.Run, err)
	}
	want := schemas.StartRequest{
		V: 1, WorkflowID: "order.17/é", Run: got.Run, RequestID: got.Run, Type: "order", TypeVersion: "2",
		Input: schemas.Payload(`{"n":1}`), ExecutionStartToCloseTimeout: schemas.Seconds(3600),
		TaskStartToCloseTimeout: schemas.Seconds(5), TaskScheduleToStartTimeout: schemas.Unlimited, TaskPriority: 3,
		ActivityDefaults: &schemas.ActivityDefaults{List: "PCI"}, ChildPolicy: schemas.ChildAbandon,
		TagList: []string{"a"}, Attributes: map[string]string{"k": "v"}, Identity: "shop:1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if run.ID != "order.17/é" || run.RunID != got.Run {
		t.Fatalf("got run %q %q, want %q", run.ID, run.RunID, got.Run)
	}
}

func TestStartDefaults(t *testing.T) {
	c, s := newService(t, drover.Options{})
	on(s, "start", func(_ int, req schemas.StartRequest) any {
		return schemas.StartResponse{WorkflowID: req.WorkflowID, Run: "the first run", Started: false}
	})
	run, err := c.Start(t.Context(), "order", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ulid.ParseStrict(run.ID); err != nil {
		t.Fatalf("workflow id %q: %v", run.ID, err)
	}
	if run.RunID != "the first run" {
		t.Fatalf("got run %q, want the one that the answer names", run.RunID)
	}
}

// Bad input: ids, timeouts, payloads. Nothing is sent.
func TestArgumentsAreChecked(t *testing.T) {
	c, _ := newService(t, drover.Options{Timeout: time.Nanosecond})
	ctx := t.Context()
	start := func(typ string, in any, o drover.StartOptions) error {
		_, err := c.Start(ctx, typ, in, &o)
		return err
	}
	long := strings.Repeat("x", 257)
	events := func(r *drover.Run) (err error) {
		for _, err = range r.History(ctx, drover.HistoryOptions{}) {
		}
		return err
	}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"id":              {start("t", nil, drover.StartOptions{ID: long}), "workflow id has 257 bytes"},
		"id with newline": {start("t", nil, drover.StartOptions{ID: "a\nb"}), "control character"},
		"type":            {start("", nil, drover.StartOptions{}), "workflow type is empty"},
		"timeout":         {start("t", nil, drover.StartOptions{Timeout: -time.Hour}), "StartOptions.Timeout"},
		"wait":            {start("t", nil, drover.StartOptions{DecisionWait: -2}), "StartOptions.DecisionWait"},
		"input":           {start("t", make(chan int), drover.StartOptions{}), "input cannot be encoded"},
		"result":          {c.Run("", "").Result(ctx, nil), "workflow id is empty"},
		"run id":          {c.Run("a", long).Result(ctx, nil), "run id has 257 bytes"},
		"signal name":     {c.Run("a", "").Signal(ctx, "", nil), "signal name is empty"},
		"signal input":    {c.Run("a", "").Signal(ctx, "s", func() {}), "input cannot be encoded"},
		"pause":           {c.Run("", "").Pause(ctx, ""), "workflow id is empty"},
		"history":         {events(c.Run("", "")), "workflow id is empty"},
	} {
		wantError(t, tt.err, drover.ErrInvalid)
		if !strings.Contains(tt.err.Error(), tt.want) {
			t.Fatalf("%s: got %q, want it to hold %q", name, tt.err, tt.want)
		}
	}
	for _, err := range c.List(ctx, drover.ListOptions{Limit: -1}) {
		wantError(t, err, drover.ErrInvalid)
	}
	err := start("t", nil, drover.StartOptions{Attributes: map[string]string{"a": strings.Repeat("x", 2<<20)}})
	wantError(t, err, drover.ErrTooLarge)
}

// P-5: a request that got no answer is repeated byte by byte, so that its ids make the repeat harmless.
func TestRepeatsCarryTheSameIDs(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{})
		on(s, "start", func(n int, req schemas.StartRequest) any {
			if n < 3 {
				return nil
			}
			return schemas.StartResponse{WorkflowID: req.WorkflowID, Run: req.Run}
		})
		if _, err := c.Start(t.Context(), "order", nil, nil); err != nil {
			t.Fatal(err)
		}
		asked := s.requests("start")
		if len(asked) != 3 || !bytes.Equal(asked[0], asked[1]) || !bytes.Equal(asked[0], asked[2]) {
			t.Fatalf("got %d requests %q, want the same three times", len(asked), asked)
		}
	})
}

// Of two brokers one may have stopped without a word, and a call may come to it again and again by chance: so it is asked every two seconds.
func TestCallIsMadeAgainEveryTwoSeconds(t *testing.T) { // P-5
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{})
		on(s, "terminate", func(n int, _ schemas.ExecutionRequest) any {
			if n < 6 {
				return nil
			}
			return schemas.AckResponse{Run: "r"}
		})
		began := time.Now()
		if err := c.Run("a", "r").Terminate(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		// Each try begins with a question, besides.
		if took := time.Since(began); took < 8*time.Second || took > 10*time.Second+500*time.Millisecond {
			t.Errorf("the sixth question came after %v, want at most 10 s and five pauses", took)
		}
		for i, b := range s.requests("terminate") {
			if !bytes.Equal(b, s.requests("terminate")[0]) {
				t.Errorf("request %d was %q", i, b)
			}
		}
	})
}

func TestCallWaitsForSomebodyToServe(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		var log bytes.Buffer
		logger := logrus.New()
		logger.SetOutput(&log)
		c, s := newService(t, drover.Options{Logger: logger})
		time.AfterFunc(12*time.Second, func() {
			on(s, "why", func(int, schemas.ExecutionRequest) any { return schemas.WhyResponse{Because: "tea"} })
		})
		began := time.Now()
		why, err := c.Run("a", "").Why(t.Context())
		if err != nil || why != "tea" {
			t.Fatalf("got %q, %v, want tea", why, err)
		}
		if took := time.Since(began); took < 12*time.Second || took > 14*time.Second {
			t.Fatalf("took %v, want 12 s and little more", took)
		}
		if n := strings.Count(log.String(), "no answer yet"); n != 1 {
			t.Fatalf("got %d log lines %q, want 1", n, log.String())
		}
	})
}

func TestCallGivesUp(t *testing.T) {
	silence := func(int, schemas.ExecutionRequest) any { return nil }
	busy := func(int, schemas.ExecutionRequest) any {
		return schemas.WhyResponse{Error: schemas.Errorf(schemas.CodeUnavailable, "the owner is changing")}
	}
	for _, tt := range []struct {
		name  string
		play  func(int, schemas.ExecutionRequest) any // nil: nobody serves
		limit time.Duration                           // of ctx; 0: none
		is    error
		code  schemas.Code
		took  time.Duration
	}{
		{"nobody serves", nil, 0, drover.ErrUnavailable, schemas.CodeUnavailable, 15 * time.Second},
		{"nobody serves, short ctx", nil, 3 * time.Second, drover.ErrUnavailable, schemas.CodeUnavailable, 3 * time.Second},
		{"nobody serves, ctx found", nil, 3 * time.Second, context.DeadlineExceeded, schemas.CodeUnavailable, 3 * time.Second},
		{"nobody serves, long ctx", nil, time.Hour, drover.ErrUnavailable, schemas.CodeUnavailable, 15 * time.Second},
		{"silence", silence, 0, drover.ErrTimeout, schemas.CodeTimeout, 15 * time.Second},
		{"silence, short ctx", silence, time.Second, context.DeadlineExceeded, schemas.CodeTimeout, time.Second},
		{"owner changing", busy, 0, drover.ErrUnavailable, schemas.CodeUnavailable, 15 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				c, s := newService(t, drover.Options{})
				if tt.play != nil {
					on(s, "why", tt.play)
				}
				ctx := t.Context()
				if tt.limit > 0 {
					ctx = bounded(t, tt.limit)
				}
				began := time.Now()
				_, err := c.Run("a", "").Why(ctx)
				if e := wantError(t, err, tt.is); e.Code != tt.code || e.Op != "why" || e.ID != "a" {
					t.Fatalf("got %#v, want code %s", e, tt.code)
				}
				if took := time.Since(began); took > tt.took || took < tt.took-2*time.Second {
					t.Fatalf("took %v, want %v", took, tt.took)
				}
			})
		})
	}
}

func TestCanceledCallEnds(t *testing.T) {
	for _, who := range []string{"who hears it says nothing", "nobody hears it"} {
		t.Run(who, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				c, s := newService(t, drover.Options{})
				if who == "who hears it says nothing" {
					on(s, "why", func(int, schemas.ExecutionRequest) any { return nil })
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				cause := errors.New("the user left")
				time.AfterFunc(time.Second, func() { cancel(cause) })
				_, err := c.Run("a", "").Why(ctx)
				if e := wantError(t, err, context.Canceled); e.Code != "" || !errors.Is(err, cause) {
					t.Fatalf("got %v, code %q, want the cause and no code", err, e.Code)
				}
				limited, stop := context.WithTimeoutCause(t.Context(), time.Second, cause)
				defer stop()
				_, err = c.Run("a", "").Why(limited)
				if wantError(t, err, context.DeadlineExceeded); !errors.Is(err, cause) {
					t.Fatalf("got %v, want the cause", err)
				}
			})
		})
	}
}

// Every code has its sentinel, and a refusal keeps its words, field and hint.
func TestRefusals(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{Timeout: 20 * time.Millisecond})
		on(s, "signal", func(_ int, req schemas.SignalRequest) any {
			code := schemas.Code(req.Name)
			return schemas.SignalResponse{Error: schemas.Errorf(code, "no way").InField("name").WithHint("try %d", 2).About("a", "r1")}
		})
		all := map[schemas.Code]error{
			schemas.CodeInvalid: drover.ErrInvalid, schemas.CodeNotFound: drover.ErrNotFound,
			schemas.CodeAlreadyStarted: drover.ErrAlreadyStarted, schemas.CodeClosed: drover.ErrClosed,
			schemas.CodeUnavailable: drover.ErrUnavailable, schemas.CodeTimeout: drover.ErrTimeout,
			schemas.CodeTooLarge: drover.ErrTooLarge, schemas.CodeUnsupported: drover.ErrUnsupported,
			schemas.CodeInternal: drover.ErrInternal, schemas.CodeConflict: drover.ErrConflict,
			schemas.CodePermission: drover.ErrPermission,
		}
		for code, sentinel := range all {
			err := c.Run("a", "").Signal(t.Context(), string(code), nil)
			e := wantError(t, err, sentinel)
			if want := `drover: signal "a" run r1: name: no way (try 2)`; err.Error() != want {
				t.Fatalf("%s: got %q, want %q", code, err, want)
			}
			if e.Code != code || e.Run != "r1" || e.Hint != "try 2" || !errors.Is(err, &schemas.Error{Code: code}) {
				t.Fatalf("%s: got %#v", code, e)
			}
			for other, s := range all {
				if other != code && errors.Is(err, s) {
					t.Fatalf("%s: matches the sentinel of %s", code, other)
				}
			}
		}
		err := c.Run("a", "").Signal(t.Context(), "from_the_future", nil)
		for _, s := range all {
			if errors.Is(err, s) {
				t.Fatalf("an unknown code matches %v", s)
			}
		}
	})
}

// Bad input: answers. None of them is taken for good news.
func TestBrokenAnswers(t *testing.T) {
	c, s := newService(t, drover.Options{})
	bodies := [][]byte{{}, []byte("{"), []byte(`{"v":99}`), {7, 7}, {1, 0xdd, 0xff, 0xff, 0xff, 0xff}}
	on(s, "why", func(n int, _ schemas.ExecutionRequest) any { return bodies[n-1] })
	for range bodies {
		_, err := c.Run("a", "").Why(t.Context())
		wantError(t, err, drover.ErrInternal)
	}
	_, err := s.conn.Subscribe("drover.default.api.list", "", func(m natsconn.Msg) {
		if err := m.Respond(natsconn.Header{"Nats-Service-Error-Code": {"500"}, "Nats-Service-Error": {"it broke"}}, []byte("{}")); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range c.List(t.Context(), drover.ListOptions{}) {
		wantError(t, err, drover.ErrInternal)
		if !strings.Contains(err.Error(), "500: it broke") {
			t.Fatalf("got %v", err)
		}
	}
}

func TestAnswersInMsgpack(t *testing.T) {
	c, s := newService(t, drover.Options{})
	on(s, "describe", func(int, schemas.ExecutionRequest) any {
		b, err := schemas.Marshal(schemas.DescribeResponse{Partition: 3, Execution: schemas.ExecutionInfo{Run: "r"}, Input: schemas.Payload{0xff}})
		if err != nil {
			t.Error(err)
		}
		return b
	})
	got, err := c.Run("a", "r").Describe(t.Context())
	if err != nil || got.Partition != 3 || got.Execution.Run != "r" || !bytes.Equal(got.Input, []byte{0xff}) {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestCloseLeavesAGivenConnection(t *testing.T) {
	c, s := newService(t, drover.Options{})
	on(s, "why", func(int, schemas.ExecutionRequest) any { return schemas.WhyResponse{Because: "x"} })
	c.Close()
	if _, err := c.Run("a", "").Why(t.Context()); err != nil {
		t.Fatal(err)
	}
	natsconn.Of(c).Close()
	_, err := c.Run("a", "").Why(t.Context())
	if e := wantError(t, err, drover.ErrUnavailable); !strings.Contains(e.Hint, "connect anew") {
		t.Fatalf("got %v", err)
	}
}
