package workflow_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// forge answers as a broker does that is asked who it is.
func forge(t *testing.T, e *drovertest.Env, says string) natsconn.Subscription {
	t.Helper()
	conn := natsconn.Of(e.Client)
	sub, err := conn.Subscribe(schemas.BrokersSubject, "", func(m natsconn.Msg) { _ = m.Respond(nil, []byte(`{"name":"drover",`+says+`}`)) })
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return sub
}

// A worker of workflow code does not serve beside a broker that lacks something. One of raw deciders does.
func TestABrokerLacksFeatures(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		older := forge(t, e, `"version":"0.1.9","metadata":{"namespace":"default","node":"older","features":"allOrNothing startedAt unheard-of"}`)
		code := e.Client.Worker(nil)
		workflow.Implement(code, any1, func(workflow.Context, string) (string, error) { return "code", nil }, nil)
		err := code.Run(t.Context())
		if !errors.Is(err, decider.ErrFeatures) {
			t.Fatalf("got %v, want that the worker refuses", err)
		}
		for _, part := range []string{`"older"`, "0.1.9", "lacks again tell final nonDeterministic:", "upgrade all brokers"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
		raw := e.Client.Deciders(nil)
		raw.Register("raw", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			return []schemas.Decision{decider.Complete("raw")}, nil
		}))
		e.Go(raw)
		run, err := e.Client.Start(t.Context(), "raw", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if o := e.Wait(run); string(o.Result) != `"raw"` {
			t.Errorf("raw: %s %s", o.Status, o.Reason)
		}
		if err := older.Close(); err != nil { // it is upgraded
			t.Fatal(err)
		}
		e.Go(code)
		typed, err := drover.Start(t.Context(), e.Client, any1, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := typed.Result(t.Context()); got != "code" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// While no broker of the namespace answers, a worker of workflow code waits for one.
func TestNoBrokerAnswers(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		announced, err := e.Client.NATS().SubscribeSync("drover.later.announce.>")
		if err != nil {
			t.Fatal(err)
		}
		log := logrus.New()
		log.SetOutput(io.Discard)
		w := decider.New(e.Client, &decider.Options{Namespace: "later", Logger: log})
		workflow.Implement(w, contract.Workflow[string, string]("later"), func(workflow.Context, string) (string, error) { return "", nil }, nil)
		stop := e.Go(w)
		defer stop()
		time.Sleep(time.Minute)
		if n, _, err := announced.Pending(); n > 0 || err != nil {
			t.Fatalf("the worker listens: %d, %v", n, err)
		}
		defer forge(t, e, `"version":"9.0.0","metadata":{"namespace":"later","node":"new","features":"more `+schemas.FeatureNames(schemas.Features())+`"}`).Close()
		if _, err := announced.NextMsg(time.Minute); err != nil {
			t.Errorf("the worker does not listen once a broker is there: %v", err)
		}
	})
}
