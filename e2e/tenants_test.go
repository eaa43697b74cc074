package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/e2e/load"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
)

// Two namespaces under load on one server. One is deleted in the middle of its work: nothing of it stays, the other one
// loses nothing, and the name can be used anew.
func TestNamespaceIsDeletedBesideAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.embedded("--profile", "dev")
	w.role("decider", load.Type)
	w.role("worker", load.List)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := w.client.CreateNamespace(ctx, "east", &drover.NamespaceOptions{Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	east := w.tenant("east")
	deciders := east.client.Deciders(nil)
	deciders.Register(load.Type, decider.Func(load.Decide))
	defer east.background(deciders.Run)()
	activities := east.client.Activities(&activity.Options{Lists: []string{load.List}, DrainTimeout: time.Second})
	activity.Register(activities, "square", func(_ context.Context, n int) (int, error) { return n * n, nil })
	defer east.background(activities.Run)()
	first := east.start(load.Type, "first", load.Input{Steps: 3}, startOptions{})
	east.completes(first, `"1;4;9;"`)

	here, there := newPressure(w), newPressure(east)
	for i := range 4 {
		east.start("nobody", fmt.Sprintf("open-%d", i), nil, startOptions{})
	}
	doomed, give := context.WithCancel(ctx)
	defer give()
	there.begin(doomed, "there", onceLoads(24)) // what its calls say after the end of the namespace is nobody's concern
	here.Reach(ctx, here.begin(ctx, "here", loads(rand.New(rand.NewPCG(1, 2)), 24))/3)
	if err := w.client.DeleteNamespace(ctx, "east", nil); !errors.Is(err, drover.ErrConflict) {
		t.Fatalf("got %v, want %v: runs are open", err, drover.ErrConflict)
	}
	if err := w.client.DeleteNamespace(ctx, "east", &drover.DeleteNamespaceOptions{Force: true, Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
	give()
	there.Wait()
	for name := range w.streams() {
		if strings.Contains(name, "drover-east-") {
			t.Errorf("stream %s is left of the namespace", name)
		}
	}
	if _, err := w.client.DescribeNamespace(ctx, "east"); !errors.Is(err, drover.ErrNotFound) {
		t.Errorf("got %v, want %v", err, drover.ErrNotFound)
	}
	here.begin(ctx, "after", loads(rand.New(rand.NewPCG(3, 4)), 8))
	here.End()
	here.nothingLost()
	w.idle()

	// The same name is another namespace; the workers of the former one find it.
	if _, err := w.client.CreateNamespace(ctx, "east", &drover.NamespaceOptions{Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	again := east.start(load.Type, "first", load.Input{Steps: 3}, startOptions{ReusePolicy: schemas.ReuseReject})
	east.completes(again, `"1;4;9;"`)
	w.idle("--namespace", "east")
	server.Alive()
}

// streams yields the names of the streams of the server.
func (w *world) streams() map[string]bool {
	w.t.Helper()
	ctx, cancel := w.bounded()
	defer cancel()
	names := map[string]bool{}
	all := natsconn.Of(w.client).JetStream().StreamNames(ctx)
	for name := range all.Name() {
		names[name] = true
	}
	if err := all.Err(); err != nil {
		w.t.Fatal(err)
	}
	return names
}

// Activity workers stop on SIGTERM in the middle of their work, one after the other: no activity runs twice, although all
// of them may.
func TestWorkersStopUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.embedded("--profile", "dev")
	w.role("decider", load.Type)
	f := &pair{world: w, notes: filepath.Join(w.dir, "notes"), p: newPressure(w)}
	if err := os.Mkdir(f.notes, 0o700); err != nil {
		t.Fatal(err)
	}
	workers := make([]*process, 4)
	for i := range workers {
		workers[i] = asRole(t, w.dir, "worker", map[string]string{envURL: w.url, envName: load.List, envDir: f.notes})
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	poll.Until(t, patience, "all workers wait for work", func() bool {
		lists, err := w.client.TaskLists(ctx)
		return err == nil && len(lists) == 1 && lists[0].Workers >= len(workers)
	})
	all := make([]load.Input, 48)
	for i := range all {
		all[i] = load.Input{Steps: 8}
	}
	f.p.begin(ctx, "load", all)
	for i := range 3 {
		poll.Until(t, patience, "the work goes on", func() bool { return f.ran() >= (i+1)*len(all) })
		t.Logf("worker %d is told to stop after %d of %d activities", i, f.ran(), 8*len(all))
		workers[i].Signal(syscall.SIGTERM)
	}
	f.p.End()
	for _, stopped := range workers[:3] {
		stopped.Leaves(patience)
	}
	f.onlyOnce(len(all) * 8)
	f.p.nothingLost()
}

// ran counts the activities of which the workers have a note.
func (f *pair) ran() int {
	f.t.Helper()
	files, err := os.ReadDir(f.notes)
	if err != nil {
		f.t.Fatal(err)
	}
	return len(files)
}
