package service_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas"
)

const ns = subject.Namespace("default")

func dial(t *testing.T, s *embedded.Server) *natsconn.Conn {
	t.Helper()
	conn, err := natsconn.Dial(t.Context(), natsconn.Options{InProcess: s.Conn()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func ask(t *testing.T, conn *natsconn.Conn, body string) (*schemas.TypeResponse, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	m, err := conn.Request(ctx, ns.API("typeDescribe"), nil, []byte(body))
	if err != nil {
		return nil, err
	}
	a := new(schemas.TypeResponse)
	if err := schemas.Unmarshal(m.Data, a); err != nil {
		t.Fatal(err)
	}
	return a, nil
}

// One of several nodes answers in a queue group; what cannot be read is refused with its field; an error that is no refusal is
// told as unavailable; after stop nobody answers.
func TestServe(t *testing.T) {
	server, err := embedded.Start(t.Context(), embedded.Options{DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	var asked atomic.Int64
	verbs := []service.Verb{{Name: "typeDescribe", Serve: service.Answer(
		func(_ context.Context, q *schemas.TypeRequest) (*schemas.TypeResponse, error) {
			asked.Add(1)
			switch q.Name {
			case "broken":
				return nil, errors.New("no quorum")
			case "refused":
				return nil, schemas.Errorf(schemas.CodeConflict, "no").InField("name")
			}
			return &schemas.TypeResponse{Changed: true}, nil
		},
		func(_ *schemas.TypeRequest, e *schemas.Error) *schemas.TypeResponse {
			return &schemas.TypeResponse{Error: e}
		},
	)}}
	var stops []func()
	for range 2 {
		stop, err := service.Serve(t.Context(), service.Options{Conn: dial(t, server), Namespace: ns, Queue: "q"}, verbs)
		if err != nil {
			t.Fatal(err)
		}
		stops = append(stops, stop)
	}
	conn := dial(t, server)
	if a, err := ask(t, conn, `{"kind":"workflow","name":"n"}`); err != nil || !a.Changed || a.Error != nil {
		t.Fatalf("got %+v, %v, want an answer", a, err)
	}
	if got := asked.Load(); got != 1 {
		t.Errorf("%d nodes have worked on a request, want 1", got)
	}
	for _, tc := range []struct {
		body, text string
		code       schemas.Code
		field      string
	}{
		{`{"kind":"workflow","nmae":"n"}`, "nmae", schemas.CodeInvalid, "nmae"},
		{`{"kind":"workflow","name":7}`, "decoded", schemas.CodeInvalid, "name"},
		{"{\"kind\":\"\xff\"}", "UTF-8", schemas.CodeInvalid, ""},
		{`{"kind":"workflow","name":"broken"}`, "no quorum", schemas.CodeUnavailable, ""},
		{`{"kind":"workflow","name":"refused"}`, "no", schemas.CodeConflict, "name"},
	} {
		a, err := ask(t, conn, tc.body)
		if err != nil {
			t.Fatal(err)
		}
		if a.Error == nil || a.Error.Code != tc.code || a.Error.Field != tc.field || !strings.Contains(a.Error.Message, tc.text) {
			t.Errorf("%s: got %+v, want %s in field %q that says %q", tc.body, a.Error, tc.code, tc.field, tc.text)
		}
	}
	for _, stop := range stops {
		stop()
	}
	// A request may be on its way while the server is told that nobody listens any more. It is lost, and is asked again.
	for tries := 0; ; tries++ {
		_, err := ask(t, conn, `{"kind":"workflow","name":"n"}`)
		if errors.Is(err, natsconn.ErrNoResponders) {
			break
		}
		if err == nil || tries == 10 {
			t.Fatalf("got %v, want nobody after the stop", err)
		}
	}
}
