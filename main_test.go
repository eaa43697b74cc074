package drover_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	defer stopExamples()
	if os.Getenv(loudRole) != "" {
		os.Exit(loud())
	}
	m.Run()
}

// service plays the API by hand: one function for each verb, answering in JSON. It records what was asked.
type service struct {
	t    *testing.T
	conn *natsconn.Conn

	mu    sync.Mutex
	asked map[string][][]byte
}

// newService starts a server and returns a client of it and the hand that plays the API. It works in a synctest bubble.
func newService(t *testing.T, o drover.Options) (*drover.Client, *service) {
	t.Helper()
	srv := embeddedtest.Serve(t, embedded.Options{DontListen: true, SyncInterval: time.Hour})
	dial := func() *natsconn.Conn { return embeddedtest.Connect(t, srv) }
	o.Conn = dial().NATS()
	c, err := drover.Connect(t.Context(), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, &service{t: t, conn: dial(), asked: map[string][][]byte{}}
}

// on answers a verb with what fn returns; nil means silence.
func on[Request any](s *service, verb string, fn func(n int, req Request) any) {
	s.t.Helper()
	_, err := s.conn.Subscribe(subject.Namespace("default").API(verb), "", func(m natsconn.Msg) {
		s.mu.Lock()
		s.asked[verb] = append(s.asked[verb], m.Data)
		n := len(s.asked[verb])
		s.mu.Unlock()
		var req Request
		if err := schemas.Unmarshal(m.Data, &req); err != nil {
			s.t.Errorf("%s: request cannot be read: %v", verb, err)
			return
		}
		if got := m.Header.Get("Content-Type"); got != "application/msgpack" {
			s.t.Errorf("%s: Content-Type is %q", verb, got)
		}
		answer := fn(n, req)
		if answer == nil {
			return
		}
		body, ok := answer.([]byte)
		if !ok {
			var err error
			if body, err = schemas.MarshalJSON(answer); err != nil {
				s.t.Errorf("%s: %v", verb, err)
				return
			}
		}
		if err := m.Respond(nil, body); err != nil && !errors.Is(err, natsconn.ErrClosed) {
			s.t.Errorf("%s: respond: %v", verb, err)
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
	// A request may come from the other connection: the server must know the interest first.
	if _, err := s.conn.Request(s.t.Context(), "nobody", nil, nil); !errors.Is(err, natsconn.ErrNoResponders) {
		s.t.Fatalf("got %v, want ErrNoResponders", err)
	}
}

func (s *service) requests(verb string) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[verb]
}

func bounded(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// wantError checks that err is an *Error of a code and returns it.
func wantError(t *testing.T, err error, sentinel error) *drover.Error {
	t.Helper()
	e, ok := errors.AsType[*drover.Error](err)
	if !ok || !errors.Is(err, sentinel) {
		t.Fatalf("got %v (%T), want *Error that is %v", err, err, sentinel)
	}
	return e
}
