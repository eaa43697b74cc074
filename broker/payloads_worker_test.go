package broker_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// narrowRights are those of a worker of list PCI that handles large payloads.
func narrowRights() embeddedtest.User {
	stream := ns.StreamTasks("PCI")
	return embeddedtest.User{Name: "worker", Subscribe: []string{"_INBOX.>", ns.AllControl()}, Publish: []string{
		"$JS.API.CONSUMER.MSG.NEXT." + stream + ".*", "$JS.ACK." + stream + ".>",
		ns.AllActOutcomes("PCI"), ns.AllOutcomesOf("PCI"), ns.AllBeatsOf("PCI"), ns.API("tasklist"),
		ns.API("upload"), ns.API("upload") + ".>", ns.API("download"),
	}}
}

// most is the largest payload that the broker of a world takes.
const most = 8 << 20

// world is a server with users, and a broker, a decider worker and a narrow activity worker on it.
type world struct {
	*fleet
	client *drover.Client
	stop   func()
}

func newWorld(t *testing.T, decide decider.Func, charge func(context.Context, []byte) ([]byte, error)) *world {
	t.Helper()
	srv, _ := embeddedtest.Start(t, false, narrowRights())
	log := logrus.New()
	log.SetOutput(writer{t})
	dial := func(user string) *natsconn.Conn {
		c, err := natsconn.Dial(t.Context(), natsconn.Options{InProcess: srv, User: user, Password: embeddedtest.Password, Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	w := &world{fleet: &fleet{t: t, log: log, post: dial(embeddedtest.Root)}}
	w.nc, w.js = w.post.NATS(), w.post.JetStream()
	info, err := topology.Ensure(t.Context(), w.post, topology.Options{Memory: true, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	w.partitions = info.Partitions
	held, err := claims.Open(w.post, ns.BucketClaims(), claims.Options{Node: "a", Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(func(context.Context, string) (*natsconn.Conn, error) { return dial(embeddedtest.Root), nil },
		broker.Options{Partitions: info.Partitions, Claims: held, Node: "a", Logger: log, MaxObject: most})
	if err != nil {
		t.Fatal(err)
	}
	if w.client, err = drover.Connect(t.Context(), &drover.Options{Conn: w.post.NATS(), Logger: log}); err != nil {
		t.Fatal(err)
	}
	deciders := w.client.Deciders(nil)
	deciders.Register("order", decide)
	worker := activity.New(dial("worker"), &activity.Options{Lists: []string{"PCI"}, Logger: log})
	activity.Register(worker, "charge", charge)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, run := range []func(context.Context) error{b.Run, deciders.Run, worker.Run} {
		all.Go(func() {
			if err := run(ctx); err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
	w.stop = func() { cancel(); all.Wait() }
	return w
}

// A workflow whose every payload is large, with a worker that may do nothing but its work.
func TestLargePayloadsThroughAllRoles(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		input, note, result := large(5<<20), large(300<<10), large(1<<20)
		noted := decider.Marker("note", note)
		decide := func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
			v, err := task.View(ctx)
			if err != nil {
				return nil, err
			}
			if !v.Done("a1") {
				task.SetContext(note)
				return []schemas.Decision{
					noted, decider.Schedule("a1", "charge", v.Input(), decider.List("PCI"), decider.StartToClose(time.Minute)),
				}, nil
			}
			_, got, _ := v.Activity("a1")
			for name, p := range map[string][2]schemas.Payload{
				"context": {task.Context(), note}, "marker": {v.Markers("note")[0], note}, "result": {got, result},
			} {
				if _, ok := p[0].Ref(); !ok {
					t.Errorf("%s: got %d bytes, want a reference", name, len(p[0]))
				}
				var text string
				if err := p[0].Decode(&text); !errors.Is(err, schemas.ErrReference) {
					t.Errorf("%s: got %v, want ErrReference", name, err)
				}
				content, err := task.Payload(ctx, p[0])
				if err != nil || !bytes.Equal(content, p[1]) {
					t.Errorf("%s: got %d bytes, %v; want the content", name, len(content), err)
				}
			}
			return []schemas.Decision{decider.Complete(got)}, nil
		}
		w := newWorld(t, decide, func(_ context.Context, in []byte) ([]byte, error) {
			if !bytes.Equal(in, input) {
				t.Errorf("the activity got %d bytes, want the input", len(in))
			}
			return result, nil
		})
		defer w.stop()
		run, err := w.client.Start(t.Context(), "order", input, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		if err := run.Result(t.Context(), &got); err != nil || !bytes.Equal(got, result) {
			t.Fatalf("got %d bytes, %v; want the result", len(got), err)
		}
		for e, err := range run.History(t.Context(), drover.HistoryOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if s, ok := e.Attributes.(*schemas.WorkflowStarted); ok {
				content, err := w.client.Payload(t.Context(), s.Input)
				if err != nil || !bytes.Equal(content, input) {
					t.Fatalf("got %d bytes, %v; want the input", len(content), err)
				}
			}
		}
		if m, ok := noted.Attributes.(*schemas.RecordMarker); !ok || !bytes.Equal(m.Details, note) {
			t.Fatalf("the author's decision was changed: %d bytes of details", len(m.Details))
		}
		w.wantSmall()
		w.check()
	})
}

func TestClientRefusesWhatIsTooLarge(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		w := newWorld(t, func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
			return []schemas.Decision{decider.Complete(make([]byte, most+1))}, nil
		}, func(context.Context, []byte) ([]byte, error) { return nil, nil })
		defer w.stop()
		w.api("list", `{}`)
		_, err := w.client.Start(t.Context(), "order", make([]byte, most+1), nil)
		refused, ok := errors.AsType[*drover.Error](err)
		if !ok || !errors.Is(err, drover.ErrTooLarge) || refused.Hint == "" {
			t.Fatalf("got %v, want ErrTooLarge and a way out", err)
		}
		if got := w.objects(); len(got) != 0 {
			t.Fatalf("got objects %v, want none", got)
		}
		// A decision that is too large is the decider's failure, and says so.
		run, err := w.client.Start(t.Context(), "order", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.await(run.ID, schemas.EventDeciderFailed)
		for e := range run.History(t.Context(), drover.HistoryOptions{}) {
			if f, ok := e.Attributes.(*schemas.DeciderFailed); ok && f.Cause != schemas.CauseDecisionTooLarge {
				t.Fatalf("got cause %s, want %s", f.Cause, schemas.CauseDecisionTooLarge)
			}
		}
		if err := run.Signal(t.Context(), "s", make([]byte, most+1)); !errors.Is(err, drover.ErrTooLarge) {
			t.Fatalf("got %v, want ErrTooLarge", err)
		}
	})
}
