package activity_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// rights are those that a worker of the list PCI needs.
func rights() (publish, subscribe []string) {
	stream := ns.StreamTasks("PCI")
	return []string{
		"$JS.API.CONSUMER.MSG.NEXT." + stream + ".*", "$JS.ACK." + stream + ".>",
		ns.AllActOutcomes("PCI"), ns.AllOutcomesOf("PCI"), ns.AllBeatsOf("PCI"), ns.API("tasklist"),
	}, []string{"_INBOX.>", ns.AllControl()}
}

// restricted starts a server with list PCI, and connects to it as root and as a user with these rights alone.
func restricted(t *testing.T, publish, subscribe []string) (root, worker *natsconn.Conn) {
	t.Helper()
	root, worker, _ = restrictedUntil(t, publish, subscribe)
	return root, worker
}

// restrictedUntil is restricted, with a way to let the user hear other subjects, as a reload of the server's configuration does.
func restrictedUntil(t *testing.T, publish, subscribe []string) (root, worker *natsconn.Conn, hear func(subscribe ...string)) {
	t.Helper()
	srv, _ := embeddedtest.Start(t, false, embeddedtest.User{Name: "worker", Publish: publish, Subscribe: subscribe})
	root = embeddedtest.As(t, srv, embeddedtest.Root)
	if _, err := topology.Ensure(t.Context(), root, topology.Options{Memory: true}); err != nil {
		t.Fatal(err)
	}
	if err := topology.EnsureList(t.Context(), root, ns, "PCI", topology.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	return root, embeddedtest.As(t, srv, "worker"), func(subscribe ...string) {
		embeddedtest.Grant(t, srv, embeddedtest.User{Name: "worker", Publish: publish, Subscribe: subscribe})
	}
}

func TestWorkerThatMayNotDoItsWorkStopsAtOnce(t *testing.T) {
	for _, tt := range []struct {
		without string // the right that is missing
		want    string // begins the refused subject; empty if the worker does without
	}{
		{"$JS.API.CONSUMER", "$JS.API.CONSUMER.MSG.NEXT." + ns.StreamTasks("PCI")},
		{"drover.default.in", "drover.default.in.0."},
		{"drover.default.outcome", "drover.default.outcome.0."},
		{"drover.default.beat", "drover.default.beat.0."},
		{"drover.default.api", ""},
		{"nothing", ""},
	} {
		t.Run("without "+tt.without, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) { testRefused(t, tt.without, tt.want) })
		})
	}
}

func testRefused(t *testing.T, without, want string) {
	publish, subscribe := rights()
	var allowed []string
	for _, s := range publish {
		if !strings.HasPrefix(s, without) {
			allowed = append(allowed, s)
		}
	}
	root, worker := restricted(t, allowed, subscribe)
	give(t, root)
	w := activity.New(worker, &activity.Options{Lists: []string{"PCI"}})
	activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) { return "done", activity.Heartbeat(ctx, nil) }))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	err := w.Run(ctx)
	if want == "" {
		if err != nil || ctx.Err() == nil {
			t.Fatalf("got %v, want it to run until it is stopped", err)
		}
		return
	}
	e, ok := errors.AsType[*natsconn.RefusedError](err)
	if !ok || !strings.HasPrefix(e.Subject, want) {
		t.Fatalf("got %v, want the refusal of %s", err, want)
	}
	for _, word := range []string{"list PCI", e.Subject, "allow the NATS user to publish"} {
		if !strings.Contains(err.Error(), word) {
			t.Fatalf("got %q, want it to hold %q", err, word)
		}
	}
	// What runs may still end, and what cannot be reported goes back.
	if took := time.Since(began); took > 2*time.Second {
		t.Fatalf("it took %v, want it at once", took)
	}
}

// What an activity publishes on the worker's connection is its own affair: a workflow may have it send anywhere. That the server refuses it neither ends
// the worker nor keeps offers from it.
func TestRefusalsOfActivitiesAreTheirs(t *testing.T) {
	stream := ns.StreamTasks("PCI")
	for _, subj := range []string{"shop.sold", "x." + stream, "x." + stream + ".y", "x.act.PCI"} {
		t.Run(subj, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				publish, _ := rights()
				root, worker := restricted(t, append(publish, "_INBOX.>"), []string{"_INBOX.>", ns.Offer("PCI"), ns.AllControl()})
				ran := make(chan error, 1)
				w := activity.New(worker, &activity.Options{Lists: []string{"PCI"}})
				activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
					ran <- worker.PublishHeard(ctx, subj, nil, nil)
					return "done", nil
				}))
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- w.Run(ctx) }()
				time.Sleep(time.Second)
				r := &rig{t: t, conn: root}
				for i := range 3 {
					refusals := r.offer()
					time.Sleep(time.Second)
					select {
					case err := <-ran:
						if !errors.Is(err, natsconn.ErrPermission) {
							t.Fatalf("got %v, want that the server refuses it", err)
						}
					case got := <-refusals:
						t.Fatalf("offer %d was refused with %q", i, got)
					case err := <-done:
						t.Fatalf("the worker ended before offer %d: %v", i, err)
					default:
						t.Fatalf("offer %d was neither done nor refused", i)
					}
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// give puts one task on the list.
func give(t *testing.T, root *natsconn.Conn) {
	t.Helper()
	task := &schemas.ActivityTask{
		V: schemas.Version, Token: "RUN.5.1", WorkflowID: workflow, Run: "RUN", ActivityID: "a", Type: "work", Attempt: 1,
		Report: ns.ActOutcome(0, workflow, "PCI"), Beat: ns.Beat(0, workflow, "PCI"),
	}
	body, err := schemas.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := root.PublishSync(t.Context(), ns.Task("PCI", 0), nil, body); err != nil {
		t.Fatal(err)
	}
}

// So does one that cannot answer, once it has had to.
func TestWorkerThatMayNotAnswerTakesNoOffers(t *testing.T) { // P-7
	virtual.Run(t, func(t *testing.T) {
		publish, _ := rights()
		root, worker := restricted(t, publish, []string{"_INBOX.>", ns.Offer("PCI"), ns.AllControl()})
		ran := make(chan struct{}, 2)
		w := activity.New(worker, &activity.Options{Lists: []string{"PCI"}, Identity: "worker-1"})
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) {
			ran <- struct{}{}
			time.Sleep(5 * time.Second)
			return "done", nil
		}))
		r := &rig{t: t, conn: root}
		stop := r.start(w)
		time.Sleep(time.Second)
		r.offer()
		time.Sleep(time.Second)
		if len(ran) != 1 {
			t.Fatal("the first offer was not taken")
		}
		body, err := schemas.MarshalJSON(&schemas.Control{V: schemas.Version, Kind: schemas.ControlHolds, Token: "RUN.5.1"})
		if err == nil {
			err = root.PublishReply(ns.Control("worker-1"), "_INBOX.owner.1", nil, body)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		r.offer()
		time.Sleep(time.Second)
		if len(ran) != 1 {
			t.Error("it took an offer that it cannot answer for")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A worker that does not hear whether it is still at an offer would be interrupted while it works. Once it may, it takes offers.
func TestWorkerThatCannotBeAskedTakesNoOffers(t *testing.T) { // P-7
	for _, tt := range []struct {
		name      string
		subscribe []string
		want      string
	}{
		{"with the right to control messages", []string{"_INBOX.>", ns.Offer("PCI"), ns.AllControl()}, ""},
		{"without", []string{"_INBOX.>", ns.Offer("PCI")}, "busy"},
		{"without that to offers", []string{"_INBOX.>", ns.AllControl()}, "503"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				publish, _ := rights()
				root, worker, hear := restrictedUntil(t, append(publish, "_INBOX.>"), tt.subscribe)
				ran := make(chan struct{}, 1)
				w := activity.New(worker, &activity.Options{Lists: []string{"PCI"}})
				activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { ran <- struct{}{}; return "done", nil }))
				r := &rig{t: t, conn: root}
				stop := r.start(w)
				time.Sleep(time.Second)
				want := func(refusal string) {
					t.Helper()
					refusals := r.offer()
					time.Sleep(time.Second)
					got := ""
					select {
					case got = <-refusals:
					case <-ran:
					default:
						t.Fatal("the offer was neither done nor refused")
					}
					if got != refusal {
						t.Errorf("got the refusal %q, want %q", got, refusal)
					}
				}
				want(tt.want)
				if tt.want == "busy" {
					hear(append(tt.subscribe, ns.AllControl())...)
					if err := worker.NATS().ForceReconnect(); err != nil { // as package post does once it is granted what was taken
						t.Fatal(err)
					}
					time.Sleep(time.Second)
					want("")
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
