package decider_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// told is a source that serves what it is told.
func told(types <-chan []string) decider.Source {
	return func(ctx context.Context, serve func([]string)) error {
		for {
			select {
			case t := <-types:
				serve(t)
			case <-ctx.Done():
				return nil
			}
		}
	}
}

func of(typ string) *schemas.DecisionTask {
	task := first()
	task.Type = typ
	return task
}

// marked answers with the name of the decider.
func marked(name string) decider.Func {
	return func(context.Context, *decider.Task) ([]schemas.Decision, error) {
		return []schemas.Decision{schemas.Decide(&schemas.RecordMarker{MarkerName: name})}, nil
	}
}

// serves tells who answers for a type; "" is nobody.
func (h *house) serves(typ string) string {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	m, err := h.broker.Request(ctx, ns.Decide(typ), nil, encoded(h.t, of(typ)))
	if errors.Is(err, natsconn.ErrNoResponders) {
		return ""
	}
	if err != nil {
		h.t.Fatal(err)
	}
	var r schemas.DecisionReply
	if err := schemas.Unmarshal(m.Data, &r); err != nil || len(r.Decisions) != 1 {
		h.t.Fatalf("got %v and %v", r, err)
	}
	return r.Decisions[0].Attributes.(*schemas.RecordMarker).MarkerName
}

func TestFollow(t *testing.T) {
	inReconnectingBubble(t, func(t *testing.T, h *house) {
		types, others := make(chan []string), make(chan []string)
		conn := h.dial()
		w := decider.New(conn, nil)
		w.Register("fixed", marked("registered"))
		w.Follow(told(types), marked("flows"))
		w.Follow(told(others), marked("others"))
		r := h.runWorker(conn, w)
		for _, step := range []struct {
			to   chan []string
			tell []string
			want map[string]string
		}{
			{types, []string{"a", "b"}, map[string]string{"a": "flows", "b": "flows", "fixed": "registered", "c": ""}},
			{others, []string{"b", "c"}, map[string]string{"a": "flows", "b": "flows", "c": "others"}},
			{types, []string{"a", "fixed", "", "d"}, map[string]string{"a": "flows", "b": "", "c": "others", "d": "flows", "fixed": "registered"}},
			{others, nil, map[string]string{"a": "flows", "c": "", "d": "flows"}},
		} {
			step.to <- step.tell
			synctest.Wait()
			time.Sleep(time.Second) // what is left out drains
			got := map[string]string{}
			for typ := range step.want {
				got[typ] = h.serves(typ)
			}
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Fatalf("after %v (-want +got):\n%s", step.tell, diff)
			}
		}
		before := h.announcements("d")
		if before == 0 {
			t.Error("a type that came later has not been announced")
		}
		if err := r.conn.NATS().ForceReconnect(); err != nil {
			t.Fatal(err)
		}
		h.announcement("d", before+1)
		r.stop()
		if err := r.wait(t); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the server has heard of it
		if got := h.serves("a"); got != "" {
			t.Errorf("a stopped worker still answers as %s", got)
		}
	})
}

func TestFollowEndsWithItsSource(t *testing.T) {
	broken := errors.New("no bucket")
	for _, want := range []error{broken, nil} {
		inBubble(t, func(t *testing.T, h *house) {
			w := decider.New(h.dial(), nil)
			w.Follow(func(_ context.Context, serve func([]string)) error { serve([]string{"a"}); return want }, decider.Func(nothing))
			err := w.Run(t.Context())
			if err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), "the source of its types") {
				t.Errorf("got %v, want the error of the source %v", err, want)
			}
		})
	}
}

// A source that does not return ends its worker as one that does.
func TestFollowEndsWithASourceThatPanics(t *testing.T) {
	for want, source := range map[string]decider.Source{
		"no bucket":       func(context.Context, func([]string)) error { panic("no bucket") },
		"ended by itself": func(context.Context, func([]string)) error { runtime.Goexit(); return nil },
	} {
		inBubble(t, func(t *testing.T, h *house) {
			w := decider.New(h.dial(), nil)
			w.Follow(source, decider.Func(nothing))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := w.Run(ctx); err == nil || !strings.Contains(err.Error(), "the source of its types: ") || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want that the source has failed: %s", err, want)
			}
		})
	}
}

func TestFollowPanics(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		w := decider.New(h.dial(), nil)
		for name, f := range map[string]func(){
			"no source":    func() { w.Follow(nil, decider.Func(nothing)) },
			"no decider":   func() { w.Follow(told(nil), nil) },
			"nil function": func() { w.Follow(told(nil), decider.Func(nil)) },
		} {
			if recovered(f) == nil {
				t.Errorf("%s: no panic", name)
			}
		}
		if err := w.Run(t.Context()); !errors.Is(err, decider.ErrNoDeciders) {
			t.Errorf("got %v, want ErrNoDeciders", err)
		}
	})
}

// A type that this user may not listen to is left out, and the others go on.
func TestFollowLeavesOutWhatIsRefused(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		srv, _ := embeddedtest.Start(t, false, embeddedtest.User{
			Name: "decider", Publish: []string{ns.Announce("order"), ns.Announce("secret"), "_INBOX.>"}, Subscribe: []string{"_INBOX.>", ns.Decide("order"), ns.Decide("order") + ".*"},
		})
		root := embeddedtest.As(t, srv, embeddedtest.Root)
		w := decider.New(embeddedtest.As(t, srv, "decider"), nil)
		types := make(chan []string)
		w.Follow(told(types), marked("flows"))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		h := &house{t: t, broker: root}
		for range 2 {
			types <- []string{"order", "secret"}
			synctest.Wait()
			if got := h.serves("order") + h.serves("secret"); got != "flows" {
				t.Errorf("got answers from %q, want those for order alone", got)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("got %v", err)
		}
	})
}
