package visibility_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/ops/visibility"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/server/wiring"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// house is a NATS server in virtual time with a namespace, and what the test begins of Drover.
type house struct {
	t      *testing.T
	server *embedded.Server
	conn   *natsconn.Conn
	space  *topology.Namespace
	client *drover.Client
	log    *logrus.Logger
	ends   []func()
	dir    string // for snapshots

	mu    sync.Mutex
	notes []ops.Operation
}

// noted are the operations that an index has noted.
func (h *house) noted() []ops.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.notes)
}

const partitions = 2

// live runs fn in a house. What it has begun ends after it.
func live(t *testing.T, fn func(t *testing.T, h *house)) {
	t.Helper()
	virtual.Run(t, func(t *testing.T) {
		log := logrus.New()
		log.SetOutput(t.Output())
		h := &house{t: t, log: log}
		defer h.end()
		var err error
		if h.server, err = embedded.Start(t.Context(), embedded.Options{DontListen: true}); err != nil {
			t.Fatal(err)
		}
		h.ends = append(h.ends, h.server.Shutdown)
		h.conn = h.dial("test")
		h.ends = append(h.ends, h.conn.Close)
		h.ensure()
		if h.client, err = drover.Connect(t.Context(), &drover.Options{Conn: h.conn.NATS()}); err != nil {
			t.Fatal(err)
		}
		h.ends = append(h.ends, func() { h.client.Close() })
		fn(t, h)
	})
}

func (h *house) ensure() {
	h.t.Helper()
	var err error
	h.space, err = topology.Ensure(h.t.Context(), h.conn, topology.Options{Partitions: partitions, Memory: true})
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) end() {
	for _, end := range slices.Backward(h.ends) {
		end()
	}
}

func (h *house) dial(name string) *natsconn.Conn {
	h.t.Helper()
	c, err := natsconn.Dial(context.Background(), natsconn.Options{InProcess: h.server.Conn(), Name: name, Logger: h.log})
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// run runs something until it is stopped.
func (h *house) run(fn func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := fn(ctx); err != nil && ctx.Err() == nil {
			h.t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	h.ends = append(h.ends, stop)
	return stop
}

// index is an index that runs. Its owners are those of brokers.
func (h *house) index(brokers ...*broker.Broker) *visibility.Index {
	h.t.Helper()
	x := h.newIndex(brokers...)
	h.begin(x)
	return x
}

func (h *house) begin(x *visibility.Index) (stop func()) {
	h.t.Helper()
	stop = h.run(x.Run)
	select {
	case <-x.Started():
	case <-time.After(time.Minute):
		h.t.Fatal("the index does not begin")
	}
	return stop
}

func (h *house) newIndex(brokers ...*broker.Broker) *visibility.Index {
	h.t.Helper()
	x, err := visibility.New(visibility.Options{
		Dial:      func(context.Context) (*natsconn.Conn, error) { return h.dial("index"), nil },
		Namespace: h.space.Name, Partitions: partitions, Node: "n", Logger: h.log, Dir: h.dir,
		Note: func(_ context.Context, o ops.Operation) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.notes = append(h.notes, o)
		},
		Owned: func() (all []int) {
			for _, b := range brokers {
				all = append(all, b.Owned()...)
			}
			return all
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return x
}

// broker is a broker that runs and tells what changes.
func (h *house) broker(node string, changed func(int, uint64, uint64, []broker.Change)) (b *broker.Broker, stop func()) {
	h.t.Helper()
	held, err := claims.Open(h.conn, h.space.Name.BucketClaims(), claims.Options{
		Node: node, StoreID: h.server.StoreID(), Boot: h.server.Boot(), Logger: h.log,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	w := &wiring.Wiring{
		Conn: h.conn, Dial: func(_ context.Context, name string) (*natsconn.Conn, error) { return h.dial(name), nil },
		Namespace: h.space.Name, Partitions: partitions, Claims: held, Logger: h.log,
	}
	if b, err = w.Broker(broker.Options{Changed: changed}); err != nil {
		h.t.Fatal(err)
	}
	return b, h.run(b.Run)
}

// deciders end runs as their inputs and signals say.
func (h *house) deciders() {
	w := h.client.Deciders(nil)
	for _, typ := range []string{"order", "child"} {
		w.Register(typ, decider.Func(func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
			var all []schemas.Decision
			for _, e := range task.Events() {
				word := ""
				switch a := e.Attributes.(type) {
				case *schemas.WorkflowStarted:
					word = strings.Trim(string(a.Input), `"`)
				case *schemas.Signal:
					word = a.SignalName
				}
				switch word {
				case "done":
					all = append(all, schemas.Decide(&schemas.CompleteWorkflow{}))
				case "fail":
					all = append(all, schemas.Decide(&schemas.FailWorkflow{Reason: "it was told to"}))
				case "mark":
					all = append(all, schemas.Decide(&schemas.SetAttributes{Attributes: map[string]string{"marked": "yes"}}))
				case "parent":
					all = append(all, schemas.Decide(&schemas.StartChild{WorkflowID: "kid", WorkflowType: "child"}))
				}
			}
			return all, nil
		}))
	}
	h.run(w.Run)
}

func (h *house) start(id, input string, o *drover.StartOptions) *drover.Run {
	h.t.Helper()
	if o == nil {
		o = &drover.StartOptions{}
	}
	o.ID = id
	r, err := h.client.Start(h.t.Context(), "order", input, o)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// put writes a record by hand, where there is no broker.
func (h *house) put(id, run, status string) {
	h.t.Helper()
	p := subject.Partition(id, partitions)
	head := natsconn.Header{schemas.StatusHeader: {status + " 1 " + strconv.FormatInt(time.Now().UnixNano(), 36) + " order"}}
	if _, err := h.conn.PublishSync(h.t.Context(), h.space.Name.History(p, id, run), head, []byte("x")); err != nil {
		h.t.Fatal(err)
	}
}

// purge takes a run away, as a janitor does, without a word.
func (h *house) purge(id, run string) {
	h.t.Helper()
	p := subject.Partition(id, partitions)
	if err := h.conn.PurgeSubject(h.t.Context(), h.space.Name.StreamHistory(p), h.space.Name.History(p, id, run)); err != nil {
		h.t.Fatal(err)
	}
}

// another makes the streams of the histories anew.
func (h *house) another() {
	h.t.Helper()
	time.Sleep(time.Second) // nothing of it is made when something of the others was
	for p := range partitions {
		if err := h.conn.JetStream().DeleteStream(h.t.Context(), h.space.Name.StreamHistory(p)); err != nil {
			h.t.Fatal(err)
		}
	}
	h.ensure()
}

func (h *house) signal(r *drover.Run, name string) {
	h.t.Helper()
	if err := r.Signal(h.t.Context(), name, nil); err != nil {
		h.t.Fatal(err)
	}
}

// await waits until a question to an index has the answer, and fails if it has another one after a minute.
func (h *house) await(x *visibility.Index, text, want string) {
	h.t.Helper()
	var got string
	for range 600 {
		if got = h.ask(x, text); got == want {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	h.t.Fatalf("%s: got %q, want %q", text, got, want)
}

// ask tells the runs that an index finds among what was written before, as words, once it is built.
func (h *house) ask(x *visibility.Index, text string) string {
	h.t.Helper()
	q := &ops.QueryRequest{Query: text, Wait: schemas.Seconds(5)}
	a, err := x.Query(h.t.Context(), q)
	for tries := 0; err == nil && a.Index.Building != 0; tries++ {
		if tries == 600 {
			h.t.Fatalf("the index is not built within a minute: %+v", a.Index)
		}
		time.Sleep(100 * time.Millisecond)
		a, err = x.Query(h.t.Context(), q)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	var all []string
	for _, r := range a.Runs {
		word := fmt.Sprintf("%s:%s", r.WorkflowID, r.Status)
		if r.Reason != "" {
			word += " (" + r.Reason + ")"
		}
		all = append(all, word)
	}
	return strings.Join(all, ", ")
}

// rows are all rows of an index that has read everything.
func (h *house) rows(x *visibility.Index) map[schemas.Execution]ops.FoundRun {
	h.t.Helper()
	all := map[schemas.Execution]ops.FoundRun{}
	cursor := ""
	for {
		a, err := x.Query(h.t.Context(), &ops.QueryRequest{Limit: 3, Cursor: cursor, Wait: schemas.Seconds(5)})
		if err != nil || a.Index.Lag != 0 || a.Index.Building != 0 {
			h.t.Fatalf("got %+v, %v; want all that was written", a, err)
		}
		for _, r := range a.Runs {
			x := schemas.Execution{WorkflowID: r.WorkflowID, Run: r.Run}
			if _, twice := all[x]; twice {
				h.t.Fatalf("%v comes twice", x)
			}
			all[x] = r
		}
		if cursor = a.Cursor; cursor == "" {
			return all
		}
	}
}

// same compares the rows of an index with what the headers of last records say.
func (h *house) same(x *visibility.Index) {
	h.t.Helper()
	time.Sleep(10 * time.Second) // whatever is going on has ended by then
	got := h.rows(x)
	n := 0
	for want, err := range h.client.List(h.t.Context(), drover.ListOptions{}) {
		if err != nil {
			h.t.Fatal(err)
		}
		n++
		r, ok := got[schemas.Execution{WorkflowID: want.WorkflowID, Run: want.Run}]
		if late := want.ClosedAt.Sub(r.ClosedAt); !ok || late < -time.Second || late > time.Second {
			h.t.Fatalf("got %+v, want %+v", r, want)
		}
		want.ClosedAt = r.ClosedAt
		if want.Parent != nil {
			want.Parent = &schemas.Execution{WorkflowID: want.Parent.WorkflowID}
		}
		want.Replays = nil
		if got, want := text(h.t, r.ExecutionInfo), text(h.t, want); got != want {
			h.t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
	if n != len(got) {
		h.t.Fatalf("the index has %d runs, want %d", len(got), n)
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := schemas.MarshalJSON(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
