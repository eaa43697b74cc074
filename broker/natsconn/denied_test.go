package natsconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/droverhq/drover/internal/virtual"
)

// narrow gives a connection as a user who may publish to the subjects of pub and subscribe to those of sub, on a server
// with the stream S; root may do everything.
func narrow(t *testing.T, pub, sub []string) (c, root *Conn) {
	t.Helper()
	o := serverOptions(t)
	o.Users = []*server.User{
		{Username: "root", Password: "p"},
		{Username: "narrow", Password: "p", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: pub}, Subscribe: &server.SubjectPermission{Allow: sub},
		}},
	}
	srv, stop := start(t, o)
	t.Cleanup(stop)
	root = dial(t, Options{InProcess: srv, User: "root", Password: "p"})
	stream(t, root)
	return dial(t, Options{InProcess: srv, User: "narrow", Password: "p"}), root
}

// wantRefused checks that err names the subject, and that no time has passed.
func wantRefused(t *testing.T, err error, began time.Time, want RefusedError) {
	t.Helper()
	e, ok := errors.AsType[*RefusedError](err)
	if !ok || e.Subscribe != want.Subscribe || !strings.HasPrefix(e.Subject, want.Subject) {
		t.Fatalf("got %v, want the refusal of %+v", err, want)
	}
	wantErr(t, err, ErrPermission)
	if took := time.Since(began); took > 0 {
		t.Fatalf("it took %v, want it at once", took)
	}
	if !strings.Contains(err.Error(), e.Subject) || !strings.Contains(e.Hint(), e.Subject) || !strings.Contains(e.Hint(), "allow") {
		t.Fatalf("got %q with hint %q, want both to name %s", err, e.Hint(), e.Subject)
	}
}

func TestRefusedPublishFailsAtOnce(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, root := narrow(t, []string{"s.mine", "$JS.API.STREAM.INFO.S"}, []string{"_INBOX.>"})
		put(t, c, "s.mine", "")
		b := outbox(t, c, OutboxOptions{})
		acks := make(chan Ack, 3)
		began := time.Now()
		b.Send("s.other", nil, nil, func(a Ack) { acks <- a })
		wantRefused(t, (<-acks).Err, began, RefusedError{Subject: "s.other"})
		b.Send("s.mine", nil, nil, func(a Ack) { acks <- a })
		b.Send("s.other", nil, nil, func(a Ack) { acks <- a })
		b.Send("s.mine", nil, nil, func(a Ack) { acks <- a })
		var refused int
		for range 3 {
			if a := <-acks; a.Err != nil {
				refused++
				wantRefused(t, a.Err, began, RefusedError{Subject: "s.other"})
			}
		}
		if refused != 1 || b.Outstanding() != 0 {
			t.Fatalf("got %d refusals and %d outstanding, want 1 and none", refused, b.Outstanding())
		}
		for name, call := range map[string]func() error{
			"s.other":                func() error { _, err := c.PublishSync(t.Context(), "s.other", nil, nil); return err },
			"api.x":                  func() error { _, err := c.Request(t.Context(), "api.x", nil, nil); return err },
			"$JS.API.STREAM.MSG.GET": func() error { _, err := c.LastBySubject(t.Context(), "S", "s.mine"); return err },
			"$JS.API.CONSUMER.CREATE": func() error {
				_, err := c.Read(t.Context(), "S", ReadOptions{}, func(Stored) {})
				return err
			},
		} {
			err := call()
			wantRefused(t, err, began, RefusedError{Subject: name})
			if errors.Is(err, ErrTimeout) {
				t.Fatalf("got %v: a refused publish is no unknown outcome", err)
			}
		}
		if last, err := root.StreamLastSeq(t.Context(), "S"); err != nil || last != 3 {
			t.Fatalf("got last %d, %v, want 3: a refused publish was stored", last, err)
		}
	})
}

// A call that waits for something else goes on.
func TestRefusalOfAnotherSubject(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, root := narrow(t, []string{"slow"}, []string{"_INBOX.>"})
		if _, err := root.Subscribe("slow", "", func(m Msg) {
			time.Sleep(time.Second)
			if err := m.Respond(nil, []byte("late")); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if err := root.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		go func() {
			for range 3 {
				time.Sleep(200 * time.Millisecond)
				if err := c.Publish("other", nil, nil); err != nil {
					t.Error(err)
				}
			}
		}()
		got, err := c.Request(t.Context(), "slow", nil, nil)
		if err != nil || string(got.Data) != "late" {
			t.Fatalf("got %q, %v", got.Data, err)
		}
	})
}

// Nothing is sent whose answer cannot come.
func TestRefusedInbox(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, root := narrow(t, []string{">"}, []string{"work"})
		began := time.Now()
		_, err := c.PublishSync(t.Context(), "s.a", nil, nil)
		wantRefused(t, err, began, RefusedError{Subscribe: true, Subject: "_INBOX."})
		_, err = c.StreamLastSeq(t.Context(), "S")
		wantRefused(t, err, began, RefusedError{Subscribe: true, Subject: "_INBOX."})
		_, err = c.NewOutbox(OutboxOptions{})
		wantRefused(t, err, began, RefusedError{Subscribe: true, Subject: "_INBOX."})
		if last, err := root.StreamLastSeq(t.Context(), "S"); err != nil || last != 0 {
			t.Fatalf("got last %d, %v, want nothing stored", last, err)
		}
		// The subject is of this connection alone: whoever has a prefix of their own is told of that.
		if e, ok := errors.AsType[*RefusedError](err); !ok || !strings.Contains(e.Hint(), "inbox_prefix") || !strings.Contains(e.Hint(), "Options.InboxPrefix") {
			t.Fatalf("got %v, want a hint that names the prefix of reply subjects", err)
		}
	})
}

func TestOnRefused(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, _ := narrow(t, []string{"ok"}, []string{"_INBOX.>", "ok"})
		var got []string
		remove := c.OnRefused(func(e *RefusedError) { got = append(got, fmt.Sprintf("%v %s", e.Subscribe, e.Subject)) })
		for _, s := range []string{"ok", "no.way"} {
			if _, err := c.Subscribe(s, "queue", func(Msg) {}); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Publish("nowhere", nil, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		remove()
		if err := c.Publish("nowhere", nil, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if want := "[true no.way false nowhere]"; fmt.Sprint(got) != want {
			t.Fatalf("got %v, want %s", got, want)
		}
		got = nil
		c.OnRefused(func(e *RefusedError) { got = append(got, fmt.Sprintf("%v %s", e.Subscribe, e.Subject)) })()
		if want := "[true no.way]"; fmt.Sprint(got) != want {
			t.Fatalf("got %v after the refusals, want %s: a subscription stays refused", got, want)
		}
	})
}

// The calls of the client library end at once too.
func TestUntilRefused(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, _ := narrow(t, []string{"s.>"}, []string{"_INBOX.>"})
		began := time.Now()
		ctx, stop := c.UntilRefused(t.Context(), "$JS.API.")
		defer stop()
		if err := c.Publish("elsewhere", nil, nil); err != nil {
			t.Fatal(err)
		}
		_, err := c.JetStream().Stream(ctx, "S")
		wantErr(t, err, context.Canceled)
		wantRefused(t, context.Cause(ctx), began, RefusedError{Subject: "$JS.API.STREAM.INFO.S"})
	})
}

func TestRefusedTakeFailsAtOnce(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, _ := narrow(t, []string{"s.>"}, []string{"_INBOX.>"})
		began := time.Now()
		_, _, err := c.Take(t.Context(), "S", "W")
		wantRefused(t, err, began, RefusedError{Subject: "$JS.API.CONSUMER.MSG.NEXT.S.W"})
	})
}
