package broker_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/ops/retention"
)

// remembers lets a master of the name purge what has closed, and remember it if it is to be kept softly, until it is stopped.
func (f *fleet) remembers(master string) (stop func()) {
	f.t.Helper()
	j, err := retention.New(retention.Options{
		Conn: f.post, Namespace: ns, Partitions: f.partitions, Node: master, Delay: -1, Every: 10 * time.Second, Logger: f.log,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := j.Run(ctx); err != nil {
			f.t.Error(err)
		}
	})
	return func() { cancel(); running.Wait() }
}

// keeps decides that its run is kept as its input says, and completes.
func keeps(d *decisionTask) string {
	if !d.has("WorkflowStarted") {
		return "[]"
	}
	return fmt.Sprintf(`[{"type":"SetRetention","attributes":{"retention":%q}},{"type":"CompleteWorkflow","attributes":{"result":"done"}}]`, d.Events[0].Attributes["input"])
}

// runs starts one run after the other and waits for their ends.
func (f *fleet) runs(typ, kept string, ids ...string) {
	f.t.Helper()
	for _, id := range ids {
		for f.start(fmt.Sprintf(`{"workflowId":%q,"type":%q,"requestId":%q,"input":%q}`, id, typ, id+kept, kept))["error"] != nil {
			time.Sleep(100 * time.Millisecond)
		}
		f.completes(id)
	}
}

// witnesses writes a run after the others into every partition, since the last one of each stays.
func (f *fleet) witnesses(name string) {
	f.t.Helper()
	missing := map[int]bool{}
	for p := range f.partitions {
		missing[p] = true
	}
	for n := 0; len(missing) > 0; n++ {
		id := fmt.Sprint(name, n)
		if p := subject.Partition(id, f.partitions); missing[p] {
			f.runs("witness", "forever", id)
			delete(missing, p)
		}
	}
}

// tells are what describe, result and history say of the ids: by owner those that are soft, and those that nobody knows.
func (f *fleet) tells(ids []string) (soft map[string][]string, unknown []string) {
	f.t.Helper()
	soft = map[string][]string{}
	for _, id := range ids {
		q := fmt.Sprintf(`{"workflowId":%q}`, id)
		var all []map[string]any
		marked, refused := 0, 0
		for _, verb := range []string{"describe", "result", "history"} {
			a := f.api(verb, q)
			all = append(all, a)
			if a["soft"] == true {
				marked++
			}
			if e, _ := a["error"].(map[string]any); e != nil && e["code"] == "not_found" {
				refused++
			}
		}
		switch {
		case marked == len(all):
			owner, _ := all[0]["owner"].(string)
			soft[owner] = append(soft[owner], id)
		case refused == len(all):
			unknown = append(unknown, id)
		default:
			f.t.Fatalf("%s: got %v, want one answer", id, all)
		}
	}
	return soft, unknown
}

// A0-15: whichever broker owns a workflow id asks the one master; brokers come and go, and soft runs stay; with the master they go.
func TestSoftRunsOfSeveralBrokers(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		a, b := f.node("a", nil), f.node("b", nil)
		time.Sleep(30 * time.Second) // each has its share by now
		f.decider("order", keeps)
		f.decider("witness", keeps)
		stop := f.remembers("m1")
		var ids []string
		for i := range 12 {
			ids = append(ids, fmt.Sprint("o", i))
		}
		f.runs("order", "0 soft 20", ids...)
		f.witnesses("first-")
		time.Sleep(4 * time.Minute)
		soft, unknown := f.tells(ids)
		if owners := slices.Sorted(maps.Keys(soft)); len(unknown) > 0 || strings.Join(owners, " ") != "a b" {
			t.Fatalf("got %v, and unknown are %v, want that both brokers tell of all", soft, unknown)
		}
		a.kill()
		time.Sleep(2 * time.Minute)
		if soft, unknown = f.tells(ids); len(soft["b"]) != len(ids) {
			t.Errorf("after a crash: got %v, and unknown are %v, want that b tells of all", soft, unknown)
		}
		stop()
		defer f.remembers("m2")()
		time.Sleep(2 * time.Minute)
		if soft, unknown = f.tells(ids); len(unknown) != len(ids) {
			t.Errorf("under another master: got %v, want that none is known", soft)
		}
		f.runs("order", "0 soft 20", "o3")
		f.witnesses("second-")
		time.Sleep(4 * time.Minute)
		if soft, unknown = f.tells(ids); len(unknown) != len(ids)-1 || strings.Join(soft["b"], " ") != "o3" {
			t.Errorf("under another master: got %v, want o3", soft)
		}
		b.stop()
	})
}
