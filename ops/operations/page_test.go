package operations_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/ops/operations"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// reasons are those of a page, in their order.
func reasons(a *ops.OperationsResponse) string {
	var all []string
	for _, e := range a.Operations {
		all = append(all, e.Reason)
	}
	return strings.Join(all, " ")
}

// Operations are read page by page, those of one kind, or the latest, and by the verb too.
func TestPage(t *testing.T) {
	server, err := embedded.Start(t.Context(), embedded.Options{DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	conn, err := natsconn.Dial(t.Context(), natsconn.Options{InProcess: server.Conn()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ns, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 1, Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	l := operations.New(conn, ns.Name, "node-1", nil)
	page := func(q ops.OperationsRequest) *ops.OperationsResponse {
		t.Helper()
		a, err := l.Page(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := page(ops.OperationsRequest{Latest: 3}); len(a.Operations) > 0 || a.After != 0 {
		t.Errorf("got %+v of an empty stream", a)
	}
	for i := range 7 {
		kind := ops.OperationRecycle
		if i%2 == 1 {
			kind = ops.OperationSlotsMissed
		}
		l.Note(t.Context(), ops.Operation{Kind: kind, Reason: fmt.Sprint(i)})
	}
	// A message that somebody else has put there does no harm.
	if _, err := conn.PublishSync(
		t.Context(), ns.Name.Operation("odd"), nil, []byte("{"),
	); err != nil {
		t.Fatal(err)
	}
	a := page(ops.OperationsRequest{Limit: 3})
	if reasons(a) != "0 1 2" || a.After != a.Operations[2].Sequence {
		t.Errorf("got %+v", a)
	}
	if a = page(ops.OperationsRequest{Limit: 4, After: a.After}); reasons(a) != "3 4 5 6" {
		t.Errorf("got %+v", a)
	}
	if a = page(ops.OperationsRequest{After: a.After}); len(a.Operations) != 1 ||
		a.Operations[0].Kind != "unreadable" || a.After != 0 {
		t.Errorf("got %+v", a)
	}
	missed := ops.OperationsRequest{Kind: ops.OperationSlotsMissed}
	if a = page(missed); reasons(a) != "1 3 5" || a.After != 0 {
		t.Errorf("got %+v", a)
	}
	for latest, want := range map[int]string{1: "5", 2: "3 5", 3: "1 3 5", 9: "1 3 5"} {
		missed.Latest = latest
		if a = page(missed); reasons(a) != want {
			t.Errorf("got the latest %d as %+v", latest, a)
		}
	}
	for _, q := range []ops.OperationsRequest{{Limit: -1}, {Latest: -1}, {Latest: 1, After: 1}, {Kind: "nosuch"}} {
		_, err := l.Page(t.Context(), &q)
		if e, ok := errors.AsType[*schemas.Error](err); !ok || e.Field == "" || e.Hint == "" {
			t.Errorf("%+v: got %v, want a field and the way out", q, err)
		}
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	ask, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var m natsconn.Msg
	for {
		m, err = conn.Request(
			ask, ns.Name.API("operations"), nil, []byte(`{"latest":1,"kind":"recycle"}`),
		)
		if !errors.Is(err, natsconn.ErrNoResponders) {
			break
		}
	}
	if err != nil || !strings.Contains(string(m.Data), `"reason":"6"`) {
		t.Errorf("got %s, %v", m.Data, err)
	}
}
