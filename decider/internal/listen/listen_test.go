package listen_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider/internal/listen"
	"github.com/droverhq/drover/internal/logs"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

const ns = subject.Namespace("default")

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// noOptions is what the log shows of a worker without options.
type noOptions struct{}

func (noOptions) String() string { return "" }

// A type is announced once its tasks reach the handler; a worker that leaves says so, and its own error is returned.
func TestListener(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		server := embeddedtest.Serve(t, embedded.Options{DontListen: true})
		conn, owner := embeddedtest.Connect(t, server), embeddedtest.Connect(t, server)
		told := make(chan schemas.Announcement, 10)
		sub, err := owner.Subscribe(ns.Announce("order"), "", func(m natsconn.Msg) {
			var a schemas.Announcement
			if err := schemas.Unmarshal(m.Data, &a); err != nil {
				t.Error(err)
			}
			told <- a
		})
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		if err := owner.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		late := errors.New("one was late")
		l := &listen.Listener{Conn: conn, Namespace: ns, Identity: "me", Sticky: "own", Log: logs.Or(nil), Options: noOptions{}}
		l.Drain = func(unsubscribe func(context.Context)) error {
			unsubscribe(context.Background())
			l.Leave()
			return late
		}
		var came []string
		handler := func(typ string, sticky bool, m natsconn.Msg) {
			if sticky {
				typ += ", sticky"
			}
			came = append(came, typ)
			_ = m.Respond(nil, nil)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- l.Run(ctx, map[string]listen.Handler{"order": handler}, nil) }()
		if a := <-told; a.Type != "order" || a.Worker != "me" || a.Left != "" {
			t.Errorf("got announcement %+v", a)
		}
		for _, to := range []string{ns.Decide("order"), ns.DecideSticky("order", "own")} {
			if _, err := owner.Request(t.Context(), to, nil, nil); err != nil {
				t.Errorf("%s: %v", to, err)
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, late) {
			t.Errorf("got %v, want the error of the drain", err)
		}
		if a := <-told; a.Left != "own" {
			t.Errorf("got announcement %+v, want that the worker has left", a)
		}
		synctest.Wait()
		if want := []string{"order", "order, sticky"}; !slices.Equal(came, want) {
			t.Errorf("got tasks of %q, want %q", came, want)
		}
		for _, to := range []string{ns.Decide("order"), ns.DecideAlive("order", "own")} {
			if _, err := owner.Request(t.Context(), to, nil, nil); !errors.Is(err, natsconn.ErrNoResponders) {
				t.Errorf("%s: got %v, want nobody there", to, err)
			}
		}
	})
}

// A worker that meets a broker which lacks what it needs ends, also if others have it.
func TestLackingBroker(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		server := embeddedtest.Serve(t, embedded.Options{DontListen: true})
		conn, owner := embeddedtest.Connect(t, server), embeddedtest.Connect(t, server)
		broker := func(node, namespace string, features ...schemas.Feature) {
			_, err := owner.Subscribe(schemas.BrokersSubject, "", func(m natsconn.Msg) {
				_ = m.Respond(nil, fmt.Appendf(nil, `{"name":"drover","version":"1.0.0","metadata":{"node":%q,"namespace":%q,"features":%q}}`,
					node, namespace, schemas.FeatureNames(features)))
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := owner.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		broker("good", "default", schemas.Features()...)
		broker("other", "other") // of no concern
		l := &listen.Listener{Conn: conn, Namespace: ns, Identity: "me", Log: logs.Or(nil), Options: noOptions{}, Needs: []schemas.Feature{schemas.FeatureTell}}
		drained := false
		l.Drain = func(unsubscribe func(context.Context)) error {
			unsubscribe(context.Background())
			drained = true
			return nil
		}
		more, ended := make(chan struct{}), make(chan error)
		handler := func(string, bool, natsconn.Msg) {}
		source := listen.Source{Handle: handler, Run: func(ctx context.Context, serve func([]string)) error {
			<-more
			serve([]string{"more"})
			<-ctx.Done()
			return nil
		}}
		go func() {
			ended <- l.Run(t.Context(), map[string]listen.Handler{"order": handler}, []listen.Source{source})
		}()
		synctest.Wait()
		select {
		case err := <-ended:
			t.Fatalf("it does not serve: %v", err)
		default:
		}
		broker("poor", "default", schemas.FeatureAgain)
		close(more) // all brokers are asked when a type is announced
		if err := <-ended; !errors.Is(err, listen.ErrFeatures) || !strings.Contains(err.Error(), `"poor", version 1.0.0, lacks tell:`) {
			t.Errorf("got %v", err)
		}
		if !drained {
			t.Error("what it has taken was not answered")
		}
	})
}
