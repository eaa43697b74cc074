package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/cmd/drover/check"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/ops/doctor"
)

// A workflow with an input of 5 MB, by the command line alone: the result comes back whole, the history stays short.
func TestLargeInputAndResult(t *testing.T) {
	s := serving(t, memoryServer())
	c, err := drover.Connect(t.Context(), &drover.Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	w := c.Worker(nil)
	implement := func(w *drover.Worker) {
		workflow.Implement(w, contract.Workflow[json.RawMessage, json.RawMessage]("copy"),
			func(_ workflow.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }, nil)
	}
	implement(w)
	working(t, c, w.Run)
	input := `{"rows":"` + strings.Repeat("0123456789", 150_000) + `"}`
	file := filepath.Join(t.TempDir(), "rows.json")
	if err := os.WriteFile(file, []byte(input), 0o600); err != nil {
		t.Fatal(err)
	}
	on := against(s.URL)
	if r := on("start", "copy", "--id", "big", "--input", "@"+file, "--wait"); r.code != cli.ExitDone || strings.TrimSpace(r.stdout) != input {
		t.Fatalf("got %d, %d bytes, %.300s; want the input as result", r.code, len(r.stdout), r.stderr)
	}
	var doc struct{ Result json.RawMessage }
	r := on("result", "big", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || string(doc.Result) != input {
		t.Fatalf("got %d bytes, %v; want the input as result", len(r.stdout), err)
	}
	if r := on("history", "big", "--json"); r.code != cli.ExitDone || len(r.stdout) > 10<<10 || strings.Count(r.stdout, `{"$ref":{"object":"`) != 2 {
		t.Fatalf("got %d, %d bytes: %.2000s; want references", r.code, len(r.stdout), r.stdout)
	}
	r = on("history", "big", "--json", "--payloads")
	if r.code != cli.ExitDone || strings.Count(r.stdout, input) != 2 {
		t.Fatalf("got %d, %d bytes, %.300s; want the input twice", r.code, len(r.stdout), r.stderr)
	}
	file = filepath.Join(t.TempDir(), "big.jsonl")
	if err := os.WriteFile(file, []byte(r.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	drovertest.Replay(t, file, implement)
	for command, want := range map[string]string{"describe": "1.4MiB in object ", "history": " input=1.4MiB "} {
		if r := on(command, "big"); r.code != cli.ExitDone || !strings.Contains(r.stdout, want) {
			t.Fatalf("%s: got %d: %s; want it to say %q", command, r.code, r.stdout, want)
		}
	}
	if r := on("verify"); r.code != cli.ExitDone {
		t.Fatalf("got %+v, want a sound namespace", r)
	}

	// What is lost is told: an object, and then all of them.
	js, ns := natsconn.Of(c).JetStream(), subject.Namespace("default")
	store, err := js.ObjectStore(t.Context(), ns.StorePayloads())
	if err != nil {
		t.Fatal(err)
	}
	objects, err := store.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(t.Context(), objects[0].Name); err != nil {
		t.Fatal(err)
	}
	if r := on("verify"); r.code != cli.ExitFailed || !strings.Contains(r.stdout, `payload: workflow "big"`) || !strings.Contains(r.stdout, "object "+objects[0].Name+": it was deleted") {
		t.Errorf("without an object: got %+v, want the run that names it", r)
	}
	if err := js.DeleteStream(t.Context(), ns.StreamPayloads()); err != nil {
		t.Fatal(err)
	}
	finding(t, diagnose(t, cli.ExitFailed, "--nats", s.URL), doctor.Bad, "streams", "missing: OBJ_drover-default-payloads", "drover verify")
	if r := on("verify"); r.code != cli.ExitFailed || strings.Count(r.stdout, `payload: workflow "big"`) != len(objects) {
		t.Errorf("without a store: got %+v, want %d payloads that are lost", r, len(objects))
	}
	v := check.NewVerifier(c)
	if err := v.Read(t.Context()); err != nil || len(v.Violations) != len(objects) {
		t.Fatalf("got %v, %v; want %d violations", v.Violations, err, len(objects))
	}
	if r := on("result", "big"); r.code == cli.ExitDone || !strings.Contains(r.stderr, "drover verify") {
		t.Errorf("got %+v, want to be told what to do", r)
	}
	for p := range 4 { // the run goes while it is verified
		history, err := js.Stream(t.Context(), ns.StreamHistory(p))
		if err != nil {
			t.Fatal(err)
		}
		if err := history.Purge(t.Context(), jetstream.WithPurgeSubject(ns.HistoryOfWorkflow(p, "big"))); err != nil {
			t.Fatal(err)
		}
	}
	if lost, err := v.Payloads.Missing(t.Context()); err != nil || len(lost) != 0 {
		t.Errorf("after the end of the run: got %v, %v, want nothing", lost, err)
	}
}
