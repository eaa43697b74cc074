package natsconn

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/internal/freeport"
	"github.com/droverhq/drover/internal/virtual"
)

func TestRequest(t *testing.T) {
	c := connect(t)
	sub, err := c.Subscribe("echo.*", "q", func(m Msg) {
		if err := m.Respond(Header{"From": m.Header["To"]}, append([]byte(m.Subject+" "), m.Data...)); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Request(t.Context(), "echo.a", Header{"To": {"me"}}, []byte("hi"))
	if err != nil || string(got.Data) != "echo.a hi" || got.Header.Get("From") != "me" {
		t.Fatalf("got %+v, %v", got, err)
	}
	if err := sub.Close(); err != nil {
		t.Fatal(err)
	}
	if err := sub.Close(); err != nil {
		t.Fatalf("closed twice: %v", err)
	}
	_, err = c.Request(t.Context(), "echo.a", nil, nil)
	wantErr(t, err, ErrNoResponders)
	wantErr(t, got.Respond(nil, nil), ErrInvalid)
	wantErr(t, c.Publish("a b", nil, nil), ErrInvalid)
	wantErr(t, c.Publish("a", nil, make([]byte, c.MaxPayload()+1)), ErrTooLarge)
}

// Who asks names the subject of the answer, and the answer is published by the right of who answers. So what is answered is never a message to
// Drover itself or to the NATS server.
func TestRespondReflectsNothing(t *testing.T) {
	c := connect(t)
	heard := make(chan Msg, 1)
	for _, to := range []string{
		"drover.default.in.0.w.terminate", "drover.default.signal.w.go", "drover-server.namespace.delete", "drover-server.changed", "$KV.drover-nodes.n", "$JS.API.INFO",
	} {
		sub, err := c.Subscribe(to, "", func(m Msg) { heard <- m })
		if err != nil {
			t.Fatal(err)
		}
		asked := c.msg(&nats.Msg{Subject: "q", Reply: to}) // servers from 2.15.3 on let none with a subject of JetStream through
		wantErr(t, asked.Respond(nil, []byte("reflected")), ErrInvalid)
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := sub.Close(); err != nil {
			t.Fatal(err)
		}
		select {
		case m := <-heard:
			t.Errorf("got %q on %s, want that nothing is answered there", m.Data, to)
		default:
		}
	}
}

// A connection that the library gives up for good, over what the server does not take, is closed as by ourselves: nobody waits for what does not come.
func TestConnectionGivenUp(t *testing.T) {
	c := connect(t)
	told, acked := make(chan struct{}), make(chan Ack, 1)
	defer c.OnClose(func() { close(told) })()
	o, err := c.NewOutbox(OutboxOptions{Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Subscribe("silent", "", func(Msg) {}); err != nil {
		t.Fatal(err)
	}
	o.Send("silent", nil, nil, func(a Ack) { acked <- a })
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.NATS().Publish(strings.Repeat("x", 5000), nil); err != nil {
		t.Fatal(err)
	}
	receive(t, told)
	wantErr(t, receive(t, acked).Err, ErrClosed)
	_, err = c.Request(t.Context(), "silent", nil, nil)
	wantErr(t, err, ErrClosed)
	wantErr(t, c.Publish("x", nil, nil), ErrClosed)
	c.Close()
}

// The server closes the connection of whoever sends a line that it does not read. Others say which subjects those are.
func TestLongSubjectsAreRefused(t *testing.T) {
	c := connect(t)
	o, err := c.NewOutbox(OutboxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	for _, n := range []int{4020, 4050, 4096, 5000, 100_000} {
		long := strings.Repeat("x", n)
		acks := make(chan Ack, 1)
		o.Send(long, nil, nil, func(a Ack) { acks <- a })
		ack := <-acks
		_, asked := c.Request(t.Context(), long, nil, nil)
		_, stored := c.PublishSync(t.Context(), long, nil, nil)
		_, unheard := c.Unheard(t.Context(), []string{long})
		for i, err := range []error{c.Publish(long, nil, nil), c.Publish(long, Header{"A": {"b"}}, make([]byte, 1<<19)), c.PublishReply("x", long, nil, nil), ack.Err, asked, stored, unheard} {
			if n > 4096 && !errors.Is(err, ErrInvalid) {
				t.Errorf("%d bytes, way %d: got %v, want %v", n, i, err, ErrInvalid)
			}
		}
		if err := c.Flush(t.Context()); err != nil || !c.Connected() {
			t.Fatalf("%d bytes: got %v, want the connection as it was", n, err)
		}
	}
}

func TestRequestTimesOut(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		if _, err := c.Subscribe("silent", "", func(Msg) {}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, tt := range []struct {
			ctx  context.Context
			want time.Duration
		}{{t.Context(), defaultRequestTimeout}, {ctx, time.Minute - defaultRequestTimeout}} {
			began := time.Now()
			_, err := c.Request(tt.ctx, "silent", nil, nil)
			wantErr(t, err, ErrTimeout, context.DeadlineExceeded)
			if took := time.Since(began); took != tt.want {
				t.Fatalf("got %v, want %v", took, tt.want)
			}
			if errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), "silent") {
				t.Fatalf("got %v, want the subject and no talk of permissions", err)
			}
		}
		_, err := c.PublishSync(t.Context(), "silent", nil, nil)
		wantErr(t, err, ErrTimeout)
	})
}

// A question to a queue is asked again while nobody answers, and an answer that takes longer than that counts all the same.
func TestRequestEvery(t *testing.T) {
	const every = 2 * time.Second
	for _, tt := range []struct {
		name         string
		every, after time.Duration // an answer takes this long
		deaf         int           // so many questions are not heard
		took         time.Duration
		asked        int
		err          error
	}{
		{name: "at once", every: every, asked: 1},
		{name: "one who has stopped", every: every, deaf: 1, took: every, asked: 2},
		{name: "several, by chance", every: every, deaf: 4, took: 4 * every, asked: 5},
		{name: "slow", every: every, after: 5 * time.Second, took: 5 * time.Second, asked: 3},
		{name: "once only", deaf: 1, took: defaultRequestTimeout, asked: 1, err: ErrTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				c := connect(t)
				asked := 0
				if _, err := c.Subscribe("q", "", func(m Msg) {
					asked++
					if string(m.Data) != "hi" || m.Header.Get("To") != "you" {
						t.Errorf("asked %q with %v", m.Data, m.Header)
					}
					if asked <= tt.deaf {
						return
					}
					time.AfterFunc(tt.after, func() {
						if err := m.Respond(nil, []byte("yes")); err != nil {
							t.Error(err)
						}
					})
				}); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				got, err := c.RequestEvery(t.Context(), tt.every, "q", Header{"To": {"you"}}, []byte("hi"))
				if took := time.Since(began); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				if !errors.Is(err, tt.err) || err == nil && string(got.Data) != "yes" {
					t.Errorf("got %q, %v, want %v", got.Data, err, tt.err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if asked != tt.asked {
					t.Errorf("asked %d times, want %d", asked, tt.asked)
				}
			})
		})
	}
}

func TestPublishReplyAndQueues(t *testing.T) {
	c := connect(t)
	answers := make(chan Msg, 100)
	if _, err := c.Subscribe("answers", "", func(m Msg) { answers <- m }); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := c.Subscribe("work", "workers", func(m Msg) {
			if err := m.Respond(nil, fmt.Append(nil, i)); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	for range 50 {
		if err := c.PublishReply("work", "answers", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	for range 50 {
		receive(t, answers)
	}
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(answers) > 0 {
		t.Fatal("a message of a queue went to several subscribers")
	}
}

// What was received when the drain begins is handled before it ends.
func TestDrain(t *testing.T) {
	srv, stop := start(t, listening(t))
	t.Cleanup(stop)
	for name, o := range map[string]Options{"socket": {URL: srv.ClientURL()}, "in process": {InProcess: srv}} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, o)
			const n = 200
			handled, gate := make(chan Msg, n), make(chan struct{})
			sub, err := c.Subscribe("work", "q", func(m Msg) {
				<-gate
				handled <- m
			})
			if err != nil {
				t.Fatal(err)
			}
			for range n {
				if err := c.Publish("work", nil, nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			wantErr(t, sub.Drain(ctx), context.DeadlineExceeded)
			close(gate)
			if o.InProcess != nil {
				if err := sub.Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for range n {
				receive(t, handled)
			}
		})
	}
}

// webServer gives the address of one that speaks HTTP, and nothing else.
func webServer(t *testing.T) (address string) {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestDialFails(t *testing.T) {
	o := listening(t)
	o.Authorization = "secret"
	srv, stop := start(t, o)
	t.Cleanup(stop)
	here := srv.ClientURL()
	dead := fmt.Sprintf("nats://127.0.0.1:%d", freePort(t))
	ca, key := certificate(t)
	web := webServer(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx  context.Context
		opts Options
		want error
		hint string
	}{
		"nobody there":    {t.Context(), Options{URL: dead}, ErrNoConnection, "drover server"},
		"address named":   {t.Context(), Options{URL: dead}, ErrNoConnection, dead},
		"bad token":       {t.Context(), Options{URL: here, Token: "wrong"}, ErrNoConnection, "check user, token"},
		"secret hidden":   {t.Context(), Options{URL: strings.Replace(here, "://", "://me:hunter2@", 1)}, ErrNoConnection, "xxxxx@"},
		"secret of signs": {t.Context(), Options{URL: "nats://me:hun ter2@127.0.0.1:4222"}, ErrNoConnection, "%XX"},
		"secret escaped":  {t.Context(), Options{URL: "nats://me:ter2%zz@127.0.0.1:4222"}, ErrNoConnection, "%XX"},
		"secret a port":   {t.Context(), Options{URL: "nats://me:ter2#@127.0.0.1:4222"}, ErrNoConnection, "%XX"},
		"secret in parts": {t.Context(), Options{URL: "nats://me:ter2,ter2@127.0.0.1:4222"}, ErrNoConnection, "%XX"},
		"secret number":   {t.Context(), Options{URL: "nats://me:112233,ter2@" + strings.TrimPrefix(dead, "nats://")}, ErrNoConnection, "(unreadable address)"},
		"tls to plain":    {t.Context(), Options{URL: here, Token: "secret", CAFile: ca}, ErrNoConnection, "CA"},
		"plain by wss":    {t.Context(), Options{URL: strings.Replace(here, "nats:", "wss:", 1)}, ErrNoConnection, "one side wants TLS"},
		"plain by ws":     {t.Context(), Options{URL: strings.Replace(here, "nats:", "ws:", 1)}, ErrNoConnection, "no websocket"},
		"web by ws":       {t.Context(), Options{URL: "ws://" + web}, ErrNoConnection, "no websocket"},
		"web by nats":     {t.Context(), Options{URL: web, Timeout: 50 * time.Millisecond}, ErrNoConnection, "does not greet"},
		"two kinds":       {t.Context(), Options{URL: here + ",ws://" + web}, ErrNoConnection, "or of none"},
		"no such host":    {t.Context(), Options{URL: "nats://no-such-host.invalid", Timeout: time.Second}, ErrNoConnection, "looked up"},
		"no token first":  {t.Context(), Options{URL: here + "," + dead}, ErrNoConnection, "check user, token"},
		"no token last":   {t.Context(), Options{URL: dead + "," + here}, ErrNoConnection, "check user, token"},
		"all of two dead": {t.Context(), Options{URL: dead + "," + dead}, ErrNoConnection, "drover server"},
		"no ca":           {t.Context(), Options{URL: here, Token: "secret", CAFile: key}, ErrNoConnection, "holds no certificate"},
		"no such ca":      {t.Context(), Options{URL: here, CAFile: "/nonexistent/ca.pem"}, ErrInvalid, "CAFile: open /nonexistent/ca.pem"},
		"no such creds":   {t.Context(), Options{URL: here, CredsFile: "/nonexistent/creds"}, ErrInvalid, "CredsFile: open /nonexistent/creds"},
		"ended context":   {ended, Options{URL: here}, ErrNoConnection, "canceled"},
		"two identities":  {t.Context(), Options{URL: here, Token: "a", User: "b"}, ErrInvalid, "only one"},
		"half a pair":     {t.Context(), Options{URL: here, CertFile: "x"}, ErrInvalid, "KeyFile"},
		"no such pair":    {t.Context(), Options{URL: here, CertFile: "/nonexistent/c", KeyFile: "/nonexistent/k"}, ErrInvalid, "/nonexistent/c"},
		"no such nkey":    {t.Context(), Options{URL: here, NKeyFile: "/nonexistent/n"}, ErrInvalid, "NKeyFile"},
		"negative":        {t.Context(), Options{URL: here, Timeout: -1}, ErrInvalid, "Timeout"},
		"request timeout": {t.Context(), Options{URL: here, RequestTimeout: -1}, ErrInvalid, "RequestTimeout"},
		"inbox prefix":    {t.Context(), Options{URL: here, InboxPrefix: "a.>"}, ErrInvalid, "InboxPrefix"},
		"api prefix":      {t.Context(), Options{URL: here, APIPrefix: "a."}, ErrInvalid, "APIPrefix"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Dial(tt.ctx, tt.opts)
			if err == nil {
				c.Close()
			}
			wantErr(t, err, tt.want)
			if strings.Contains(err.Error(), "start one with") && !errors.Is(err, nats.ErrNoServers) {
				t.Errorf("got %q, with the advice to start a server", err)
			}
			if !strings.Contains(err.Error(), tt.hint) || strings.Contains(err.Error(), "hun") || strings.Contains(err.Error(), "ter2") || strings.Contains(err.Error(), "112233") {
				t.Fatalf("got %q, want %q in it and no secret", err, tt.hint)
			}
		})
	}
	c, err := Dial(t.Context(), Options{URL: dead + "," + here, Token: "secret"})
	if err != nil {
		t.Fatalf("the second of two addresses: %v", err)
	}
	c.Close()
	c.Close()
	_, err = c.Request(t.Context(), "x", nil, nil)
	wantErr(t, err, ErrClosed)
	wantErr(t, c.Publish("x", nil, nil), ErrClosed)
	_, err = c.StreamLastSeq(t.Context(), "S")
	wantErr(t, err, ErrClosed)
}

// After Drain the server has nobody here to deliver to: what is published next goes to another of the queue.
func TestDrainedSubscriptionGetsNothingMore(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		srv, stop := start(t, serverOptions(t))
		t.Cleanup(stop)
		c, other := dial(t, Options{InProcess: srv}), dial(t, Options{InProcess: srv})
		for n := range 200 {
			mine, err := other.Subscribe("q", "queue", func(Msg) { t.Errorf("round %d: got a message after Drain", n) })
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if err := mine.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := c.Request(ctx, "q", nil, nil); !errors.Is(err, ErrNoResponders) {
				t.Fatalf("round %d: got %v, want nobody there", n, err)
			}
			cancel()
		}
	})
}

// freePort gives a port on which nobody listens.
func freePort(t *testing.T) int {
	t.Helper()
	port, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Where there is no room for one more connection, another server or other credentials help nobody.
func TestDialBeyondTheLimit(t *testing.T) {
	o := listening(t)
	o.MaxConn = 1
	srv, stop := start(t, o)
	t.Cleanup(stop)
	dial(t, Options{URL: srv.ClientURL()})
	_, err := Dial(t.Context(), Options{URL: srv.ClientURL()})
	wantErr(t, err, ErrNoConnection)
	if !strings.Contains(err.Error(), "raise the limit") || strings.Contains(err.Error(), "drover server") {
		t.Fatalf("got %v, want what to do about the limit", err)
	}
}

// What each try to connect says again is logged now and then, with the way out.
func TestErrorsThatStayAreToldSeldom(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		log, kept := logtest.NewNullLogger()
		c := &Conn{log: log}
		for range 290 {
			c.onError(nil, nil, nats.ErrAuthExpired)
			time.Sleep(100 * time.Millisecond)
		}
		all := kept.AllEntries()
		if len(all) != 3 || !strings.Contains(all[0].Message, "check user, token, creds") {
			t.Fatalf("got %d warnings in 29 s, want 3 with the way out: %v", len(all), all)
		}
		c.onError(nil, nil, nats.ErrMaxSubscriptionsExceeded)
		if all = kept.AllEntries(); len(all) != 4 || !strings.Contains(all[3].Message, "raise the limit") {
			t.Fatalf("got %v, want another error told at once", all)
		}
	})
}

func TestDialWithNKey(t *testing.T) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "seed")
	if err := os.WriteFile(file, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	o := serverOptions(t)
	o.Nkeys = []*server.NkeyUser{{Nkey: public}}
	srv, stop := start(t, o)
	t.Cleanup(stop)
	c := dial(t, Options{InProcess: srv, NKeyFile: file, InboxPrefix: "_INBOX.me"})
	if !strings.HasPrefix(c.NATS().NewInbox(), "_INBOX.me.") {
		t.Fatalf("got inbox %s", c.NATS().NewInbox())
	}
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestOptionsHideSecrets(t *testing.T) {
	for _, o := range []Options{
		{URL: "nats://u:hunter2@h:4222,nats://hunter2@h2:4222", User: "u", Password: "hunter2"},
		{URL: "u:hunter2@h:4222", Token: "hunter2"},
		{URL: "nats://u:%hunter2@h"},
	} {
		if s := o.String(); strings.Contains(s, "hunter2") || !strings.Contains(s, "auth=") {
			t.Fatalf("got %q", s)
		}
	}
}

func TestDenialLedgerStaysSmall(t *testing.T) {
	var d denials
	for i := range 3 * maxDenials {
		d.record(fmt.Sprintf(`nats: permissions violation: Permissions Violation for Publish to "a.%d"`, i))
	}
	d.record(`nats: permissions violation: Permissions Violation for Subscription to "_INBOX.x.*" using queue "q"`)
	d.record("something else")
	if n := len(d.pubs); n > maxDenials {
		t.Fatalf("got %d entries, want at most %d", n, maxDenials)
	}
	past := time.Now().Add(-time.Minute)
	if d.since(fmt.Sprintf("a.%d", 3*maxDenials-1), "", past) == nil {
		t.Fatal("the latest refusal was forgotten")
	}
	if d.since(fmt.Sprintf("a.%d", 3*maxDenials-1), "", time.Now().Add(time.Minute)) != nil {
		t.Fatal("a refusal from before the publish was taken for its own")
	}
	if e := d.since("b", "_INBOX.x.17", past); e == nil || e.Subject != "_INBOX.x.*" || !e.Subscribe {
		t.Fatalf("got %v, want the refused inbox", e)
	}
	d.forget()
	if e := d.since("b", "_INBOX.x.17", past); e != nil {
		t.Fatalf("got %v after the connection was lost, want a fresh look", e)
	}
}

func TestOnReconnectCanBeRemoved(t *testing.T) {
	srv, stop := start(t, listening(t))
	t.Cleanup(stop)
	c := dial(t, Options{URL: srv.ClientURL()})
	kept, removed := make(chan bool, 1), make(chan bool, 1)
	remove := c.OnReconnect(func() { removed <- true })
	defer c.OnReconnect(func() { kept <- true })()
	remove()
	if err := c.NATS().ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	receive(t, kept)
	if len(removed) > 0 {
		t.Fatal("a removed function was called")
	}
	if !c.Connected() {
		t.Fatal("not connected after a reconnect")
	}
}
