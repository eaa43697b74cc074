package kinds_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/activity/kinds"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

const ns = subject.Namespace("default")

// serve answers on a subject, as a micro service does.
func serve(t *testing.T, conn *natsconn.Conn, subj string, fn func(m natsconn.Msg) (natsconn.Header, []byte)) {
	t.Helper()
	sub, err := conn.Subscribe(subj, "", func(m natsconn.Msg) {
		if h, body := fn(m); h != nil || body != nil {
			if err := m.Respond(h, body); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Close() }) // the connection goes with it
	if err := conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestRequest(t *testing.T) {
	conn := embeddedtest.Dial(t)
	serve(t, conn, "svc.echo", func(m natsconn.Msg) (natsconn.Header, []byte) {
		return nil, fmt.Appendf(nil, "%s|%s", m.Header.Get("X-A"), m.Data)
	})
	serve(t, conn, "svc.json", func(natsconn.Msg) (natsconn.Header, []byte) { return nil, []byte(`{"a":1}`) })
	serve(t, conn, "svc.refuse", func(natsconn.Msg) (natsconn.Header, []byte) {
		return natsconn.Header{"Nats-Service-Error": {"no such order"}, "Nats-Service-Error-Code": {"404"}}, []byte("x")
	})
	serve(t, conn, "svc.mute", func(natsconn.Msg) (natsconn.Header, []byte) { return nil, nil })
	call := kinds.Request(conn, &kinds.RequestOptions{Allow: func(s string) error {
		if s == "secret.x" {
			return errors.New("it is secret")
		}
		return nil
	}})
	for _, tc := range []struct {
		name   string
		in     kinds.RequestInput
		want   string
		reason string
	}{
		{"text", kinds.RequestInput{Subject: "svc.echo", Body: schemas.Payload(`"hello"`), Headers: map[string]string{"X-A": "b"}}, "b|hello", ""},
		{"JSON", kinds.RequestInput{Subject: "svc.echo", Body: schemas.Payload(`{"a":1}`)}, `|{"a":1}`, ""},
		{"nothing", kinds.RequestInput{Subject: "svc.json"}, `{"a":1}`, ""},
		{"the service refuses", kinds.RequestInput{Subject: "svc.refuse"}, "no such order", "service_error_404"},
		{"nobody listens", kinds.RequestInput{Subject: "svc.nobody"}, "", kinds.ReasonNoResponders},
		{"no answer", kinds.RequestInput{Subject: "svc.mute", Timeout: schemas.Seconds(0.05)}, "", kinds.ReasonTimeout},
		{"denied by the worker", kinds.RequestInput{Subject: "secret.x"}, "", kinds.ReasonDenied},
		{"the namespaces of Drover", kinds.RequestInput{Subject: "drover-server.namespace.delete", Body: schemas.Payload(`{"name":"default","force":true}`)}, "", kinds.ReasonDenied},
		{"Drover itself", kinds.RequestInput{Subject: "drover.default.api.terminate"}, "", kinds.ReasonDenied},
		{"a subject without end", kinds.RequestInput{Subject: strings.Repeat("x", 5000)}, "", activity.ReasonBadInput},
		{"JetStream", kinds.RequestInput{Subject: "$JS.API.STREAM.DELETE.x"}, "", kinds.ReasonDenied},
		{"a bucket", kinds.RequestInput{Subject: "$KV.x.y"}, "", kinds.ReasonDenied},
		{"the system", kinds.RequestInput{Subject: "$SYS.REQ.SERVER.PING"}, "", kinds.ReasonDenied},
		{"an inbox", kinds.RequestInput{Subject: "_INBOX.x"}, "", kinds.ReasonDenied},
		{"bad input: no subject", kinds.RequestInput{}, "", activity.ReasonBadInput},
		{"bad input: a wildcard", kinds.RequestInput{Subject: "svc.*"}, "", activity.ReasonBadInput},
		{"bad input: white space", kinds.RequestInput{Subject: "svc.a b\r\nPUB x"}, "", activity.ReasonBadInput},
		{"bad input: an empty token", kinds.RequestInput{Subject: "svc..a"}, "", activity.ReasonBadInput},
		{"bad input: header", kinds.RequestInput{Subject: "svc.echo", Headers: map[string]string{"a": "b\n"}}, "", activity.ReasonBadInput},
		{"bad input: a header of the server", kinds.RequestInput{Subject: "svc.echo", Headers: map[string]string{"nats-ttl": "1"}}, "", activity.ReasonBadInput},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := call(t.Context(), tc.in)
			if tc.reason == "" {
				if err != nil || string(got) != tc.want {
					t.Fatalf("got %s, %v, want %s", got, err, tc.want)
				}
				return
			}
			f, ok := errors.AsType[*activity.Failure](err)
			if !ok || f.Reason != tc.reason {
				t.Fatalf("got %v, want a failure with reason %s", err, tc.reason)
			}
			if tc.want != "" {
				var details kinds.ServiceError
				if err := f.Details.Decode(&details); err != nil || details.Description != tc.want || details.Code != "404" || string(details.Body) != "x" {
					t.Fatalf("got details %s, %v, want those of the service", f.Details, err)
				}
			}
		})
	}
}

func TestRequestEndsWithItsActivity(t *testing.T) {
	conn := embeddedtest.Dial(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	serve(t, conn, "svc.mute", func(natsconn.Msg) (natsconn.Header, []byte) { cancel(activity.ErrCanceled); return nil, nil })
	if _, err := kinds.Request(conn, nil)(ctx, kinds.RequestInput{Subject: "svc.mute"}); !errors.Is(err, activity.ErrCanceled) {
		t.Fatalf("got %v, want ErrCanceled", err)
	}
}

// A worker without any code of a user serves both kinds. The task comes from the test; in life the broker sends it.
func TestKindsOnAWorker(t *testing.T) {
	t.Run("S1-26", func(t *testing.T) {
		conn := embeddedtest.Dial(t)
		_, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 1, Memory: true})
		if err == nil {
			err = topology.EnsureList(t.Context(), conn, ns, "calls", topology.ListOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		serve(t, conn, "svc.key", func(m natsconn.Msg) (natsconn.Header, []byte) { return nil, []byte(m.Header.Get(kinds.HeaderKey)) })
		w := activity.New(conn, &activity.Options{Lists: []string{"calls"}})
		activity.Register(w, kinds.TypeRequest, kinds.Request(conn, nil))
		activity.Register(w, kinds.TypeHTTP, kinds.HTTP(nil))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		defer func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		reports := make(chan schemas.Report, 10)
		reader, err := conn.Read(t.Context(), ns.StreamIn(0), natsconn.ReadOptions{}, func(m natsconn.Stored) {
			var r schemas.Report
			if err := schemas.Unmarshal(m.Data, &r); err != nil {
				t.Error(err)
			}
			reports <- r
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { reader.Close(); <-reader.Done() }()
		for typ, in := range map[string]any{
			kinds.TypeRequest: kinds.RequestInput{Subject: "svc.key"},
			kinds.TypeHTTP:    kinds.HTTPInput{URL: site(t).URL + "/key"},
		} {
			input, err := schemas.JSONPayload(in)
			if err != nil {
				t.Fatal(err)
			}
			task, err := json.Marshal(schemas.ActivityTask{
				Type: typ, Input: input, Token: "RUN.5.1", IdempotencyKey: "RUN.5.0", Report: ns.ActOutcome(0, "w", "calls"), List: "calls",
			})
			if err == nil {
				_, err = conn.PublishSync(t.Context(), ns.Task("calls", 0), nil, task)
			}
			if err != nil {
				t.Fatal(err)
			}
			select {
			case r := <-reports:
				want := schemas.Text("RUN.5.0")
				if typ == kinds.TypeHTTP {
					var out kinds.HTTPOutput
					if err := r.Result.Decode(&out); err != nil {
						t.Fatalf("%s: %v: %s", typ, err, r.Details)
					}
					r.Result, want = out.Body, schemas.Payload(`"RUN.5.0"`)
				}
				if r.Kind != schemas.ReportSuccess || string(r.Result) != string(want) {
					t.Fatalf("%s: got %s %s %s, want the idempotency key", typ, r.Kind, r.Result, r.Details)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s: got no report in ten seconds", typ)
			}
		}
	})
}
