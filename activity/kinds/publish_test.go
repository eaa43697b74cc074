package kinds_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/activity/kinds"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

func TestPublish(t *testing.T) {
	conn := embeddedtest.Dial(t)
	heard := make(chan natsconn.Msg, 10)
	serve(t, conn, "shop.>", func(m natsconn.Msg) (natsconn.Header, []byte) { heard <- m; return nil, nil })
	publish := kinds.Publish(conn, &kinds.PublishOptions{Allow: func(s string) error {
		if strings.HasSuffix(s, ".secret") {
			return errors.New("not this one")
		}
		return nil
	}})
	for _, tc := range []struct {
		name   string
		in     kinds.PublishInput
		want   string
		reason string
	}{
		{name: "JSON", in: kinds.PublishInput{Subject: "shop.sold", Body: schemas.Payload(`{"a":1}`), Headers: map[string]string{"X-A": "b"}}, want: `{"a":1}`},
		{name: "text", in: kinds.PublishInput{Subject: "shop.sold", Body: schemas.Payload(`"hello"`)}, want: "hello"},
		{name: "nothing", in: kinds.PublishInput{Subject: "shop.sold"}},
		{name: "denied", in: kinds.PublishInput{Subject: "shop.secret"}, reason: kinds.ReasonDenied},
		{name: "of Drover", in: kinds.PublishInput{Subject: "drover.default.in.0.w.start"}, reason: kinds.ReasonDenied},
		{name: "of its servers", in: kinds.PublishInput{Subject: "drover-server.changed"}, reason: kinds.ReasonDenied},
		{name: "of the server", in: kinds.PublishInput{Subject: "$KV.b.k"}, reason: kinds.ReasonDenied},
		{name: "wildcard", in: kinds.PublishInput{Subject: "shop.*"}, reason: activity.ReasonBadInput},
		{name: "header", in: kinds.PublishInput{Subject: "shop.sold", Headers: map[string]string{"Nats-Rollup": "all"}}, reason: activity.ReasonBadInput},
		{name: "too long", in: kinds.PublishInput{Subject: "shop." + strings.Repeat("x", 5000)}, reason: activity.ReasonBadInput},
		{name: "too large", in: kinds.PublishInput{Subject: "shop.sold", Body: make([]byte, 2<<20)}, reason: activity.ReasonBadInput},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := publish(t.Context(), tc.in)
			if tc.reason != "" {
				if f, ok := errors.AsType[*activity.Failure](err); !ok || f.Reason != tc.reason {
					t.Errorf("got %v, want a failure with reason %s", err, tc.reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if m := <-heard; string(m.Data) != tc.want || m.Header.Get("X-A") != tc.in.Headers["X-A"] {
				t.Errorf("got %q with %v, want %q", m.Data, m.Header, tc.want)
			}
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(activity.ErrCanceled)
	if _, err := publish(ctx, kinds.PublishInput{Subject: "shop.sold"}); !errors.Is(err, activity.ErrCanceled) {
		t.Errorf("got %v, want ErrCanceled", err)
	}
}

// JetStream of another account may have any prefix. Where the worker has rights there, workflows have none.
func TestPublishIsNoWayToImportedJetStream(t *testing.T) {
	srv, _ := embeddedtest.Start(t, false)
	conn, err := natsconn.Dial(t.Context(), natsconn.Options{InProcess: srv, User: embeddedtest.Root, Password: embeddedtest.Password, APIPrefix: "hub.js"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	_, err = kinds.Publish(conn, nil)(t.Context(), kinds.PublishInput{Subject: "hub.js.STREAM.DELETE.orders"})
	if f, ok := errors.AsType[*activity.Failure](err); !ok || f.Reason != kinds.ReasonDenied {
		t.Errorf("got %v, want a failure with reason %s", err, kinds.ReasonDenied)
	}
	if _, err := kinds.Publish(conn, nil)(t.Context(), kinds.PublishInput{Subject: "hub.jsx"}); err != nil {
		t.Errorf("got %v", err)
	}
}

// A subject that the worker's user may not publish is a failure, not a message that is lost in silence.
func TestPublishNotPermitted(t *testing.T) {
	srv, _ := embeddedtest.Start(t, false, embeddedtest.User{Name: "worker", Publish: []string{"shop.>"}, Subscribe: []string{"_INBOX.>"}})
	conn := embeddedtest.As(t, srv, "worker")
	publish := kinds.Publish(conn, nil)
	if _, err := publish(t.Context(), kinds.PublishInput{Subject: "shop.sold"}); err != nil {
		t.Errorf("got %v", err)
	}
	for range 2 {
		_, err := publish(t.Context(), kinds.PublishInput{Subject: "bank.sold"})
		if f, ok := errors.AsType[*activity.Failure](err); !ok || f.Reason != kinds.ReasonDenied {
			t.Errorf("got %v, want a failure with reason %s", err, kinds.ReasonDenied)
		}
	}
}
