package e2e

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

var makeStore = flag.String("stores.make", "", "let TestStores make testdata/stores/NAME.tar.gz and NAME.json first, from today's program")

// A store is what a server left over that was killed with -9: testdata/stores/NAME.tar.gz, with what is in it in
// NAME.json. A store that was committed stays as it is, and so do the deciders that its runs need. A new format gets
// a new store beside it.
const storesDir = "testdata/stores"

// book says what a store holds.
type book struct {
	// Made is the day on which the store was made.
	Made string `json:"made"`
	// Namespaces are the names, with the number of partitions.
	Namespaces map[string]int `json:"namespaces"`
	// Lists are the task lists that need a worker, Types the workflow types that need a decider: all follow a script.
	Lists []string `json:"lists"`
	Types []string `json:"types"`
	// Registered are registered types, with their status: "workflow typed 1".
	Registered map[string]schemas.TypeStatus `json:"registered"`
	// Dead counts the dead letters of the namespace default, by reason. Those of work that was done twice come later: its
	// second outcome is refused, and how often that is depends on what the server had synced.
	Dead map[string]int `json:"dead"`
	// AlwaysOn are the ids of always-on workflows of the namespace default. Their runs wait for the signal go.
	AlwaysOn []string    `json:"alwaysOn,omitempty"`
	Runs     []storedRun `json:"runs"`
}

// storedRun is a run of a store: what it waits for, and how it must end.
type storedRun struct {
	Namespace string `json:"namespace"`
	ID        string `json:"id"`
	// Run is named for those that are closed in the store, and must be as they are.
	Run string `json:"run,omitempty"`
	// Waits says in words what the run waits for.
	Waits string `json:"waits"`
	// Resume, Await and Signal are what it needs before it can end: an operator, an event, and then a signal.
	Resume bool              `json:"resume,omitempty"`
	Await  schemas.EventType `json:"await,omitempty"`
	Signal string            `json:"signal,omitempty"`
	// Status is how it ends, Said its result or, if it failed, the reason.
	Status schemas.Status `json:"status"`
	Said   string         `json:"said,omitempty"`
}

// Today's server takes over every store that an earlier one has left, and every run in it ends as it should.
func TestStores(t *testing.T) {
	t.Parallel()
	if *makeStore != "" {
		produce(t, *makeStore)
	}
	stores, err := filepath.Glob(filepath.Join(storesDir, "*.tar.gz"))
	if err != nil || len(stores) == 0 {
		t.Fatalf("got %v, %v, want the stores of %s", stores, err, storesDir)
	}
	for _, archive := range stores {
		name := strings.TrimSuffix(filepath.Base(archive), ".tar.gz")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b book
			text, err := os.ReadFile(filepath.Join(storesDir, name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &b); err != nil {
				t.Fatal(err)
			}
			w := newWorld(t)
			unpack(t, archive, filepath.Join(w.dir, "store"))
			w.embedded("--profile", "dev")
			b.goOn(w)
		})
	}
}

// goOn brings every run of a store to its end.
func (b *book) goOn(w *world) {
	w.t.Helper()
	spaces := map[string]*world{}
	for ns, partitions := range b.Namespaces {
		space := w.tenant(ns)
		spaces[ns] = space
		ctx, cancel := w.bounded()
		if info, err := space.client.DescribeNamespace(ctx, ns); err != nil || info.Partitions != partitions {
			w.t.Fatalf("namespace %s: got %+v, %v, want %d partitions", ns, info, err, partitions)
		}
		cancel()
	}
	b.look(w, spaces)
	for _, space := range spaces {
		deciders := space.client.Deciders(nil)
		for _, typ := range b.Types {
			deciders.Register(typ, decider.Func(decidePlay))
		}
		defer space.background(deciders.Run)()
		activities := space.client.Activities(&activity.Options{Lists: b.Lists})
		props(activities)
		defer space.background(activities.Run)()
	}
	for _, r := range b.Runs {
		r.help(spaces[r.Namespace])
	}
	for _, r := range b.Runs {
		r.end(spaces[r.Namespace])
	}
	for _, id := range b.AlwaysOn {
		renews(spaces["default"], id)
	}
	dead := map[string]int{}
	for _, letter := range spaces["default"].dead("") {
		if letter.Reason != "closed-activity" {
			dead[letter.Reason]++
		}
	}
	if diff := cmp.Diff(b.Dead, dead); diff != "" {
		w.t.Errorf("dead letters (-want +got):\n%s", diff)
	}
	w.verify()
	for ns := range b.Namespaces {
		w.idle("--namespace", ns)
	}
}

// look checks what the store holds before anybody decides or works.
func (b *book) look(w *world, spaces map[string]*world) {
	w.t.Helper()
	ctx, cancel := w.bounded()
	defer cancel()
	types := map[string]schemas.TypeStatus{}
	for info, err := range spaces["default"].client.ListTypes(ctx, drover.TypeListOptions{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		types[strings.Join([]string{string(info.Kind), info.Name, info.Version}, " ")] = info.Status
	}
	if diff := cmp.Diff(b.Registered, types); diff != "" {
		w.t.Errorf("registered types (-want +got):\n%s", diff)
	}
	for typ, status := range types {
		name := strings.Fields(typ)
		if status != schemas.TypeDeprecated || name[0] != string(schemas.WorkflowKind) {
			continue
		}
		_, err := w.client.Start(ctx, name[1], nil, &drover.StartOptions{TypeVersion: name[2]})
		if !errors.Is(err, drover.ErrDeprecated) {
			w.t.Errorf("start of %s: got %v, want %v", typ, err, drover.ErrDeprecated)
		}
	}
	for _, r := range b.Runs {
		d, err := spaces[r.Namespace].client.Run(r.ID, r.Run).Describe(ctx)
		switch {
		case r.Run == "" && errors.Is(err, drover.ErrNotFound): // its start is on its way
		case err != nil:
			w.t.Errorf("%s: %v", r.ID, err)
		case r.Run != "" && d.Execution.Status != r.Status, r.Run == "" && d.Execution.Status.Closed():
			w.t.Errorf("%s, which waits for %s, is %s in the store", r.ID, r.Waits, d.Execution.Status)
		}
	}
}

// help does what a person has to do, so that a run can end.
func (r *storedRun) help(w *world) {
	w.t.Helper()
	ctx, cancel := w.bounded()
	defer cancel()
	run := w.client.Run(r.ID, r.Run)
	if r.Resume {
		if err := run.Resume(ctx, "the store was moved"); err != nil {
			w.t.Errorf("resume %s: %v", r.ID, err)
		}
	}
	if r.Await != "" {
		w.has(run, r.Await)
	}
	if r.Signal != "" {
		if err := run.Signal(ctx, r.Signal, nil); err != nil {
			w.t.Errorf("signal %s: %v", r.ID, err)
		}
	}
}

func (r *storedRun) end(w *world) {
	w.t.Helper()
	if r.Status == schemas.StatusContinuedAsNew {
		return // look has seen it
	}
	ctx, cancel := w.bounded()
	defer cancel()
	run := w.client.Run(r.ID, r.Run)
	for r.Run == "" { // a start may still be on its way
		if _, err := run.Describe(ctx); !errors.Is(err, drover.ErrNotFound) || sleep.For(ctx, 10*time.Millisecond) != nil {
			break
		}
	}
	o, err := run.Wait(ctx)
	switch {
	case err != nil:
		because, _ := run.Why(w.t.Context())
		w.t.Errorf("%s, which waited for %s: %v: %s; the history is\n%s", r.ID, r.Waits, err, because, notation(w.events(run)))
	case o.Status != r.Status || r.Said != "" && text(o.Result) != r.Said && o.Reason != r.Said:
		w.t.Errorf("%s, which waited for %s: got %s %q %q, want %s %q", r.ID, r.Waits, o.Status, text(o.Result), o.Reason, r.Status, r.Said)
	}
}

// renews ends the run of an always-on workflow, waits for the next one, and removes the workflow.
func renews(w *world, id string) {
	w.t.Helper()
	ctx, cancel := w.bounded()
	defer cancel()
	old, err := w.client.ShowAlwaysOn(ctx, id)
	if err != nil {
		w.t.Fatal(err)
	}
	run := w.client.Run(id, old.Record.Run)
	if err := run.Signal(ctx, "go", nil); err != nil {
		w.t.Fatal(err)
	}
	if o := w.ends(run); o.Status != schemas.StatusCompleted || text(o.Result) != "heard go;" {
		w.t.Errorf("%s: got %s %q, want completed", id, o.Status, text(o.Result))
	}
	poll.Until(w.t, patience, "the always-on workflow is back", func() bool {
		a, err := w.client.ShowAlwaysOn(ctx, id)
		return err == nil && a.Record.Open && a.Record.Run != old.Record.Run
	})
	gone, err := w.client.RemoveAlwaysOn(ctx, id, &drover.StopAlwaysOnOptions{Terminate: true})
	if err != nil {
		w.t.Fatal(err)
	}
	w.ends(w.client.Run(id, gone.Record.Run))
}

// unpack writes an archive into a folder.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for files := tar.NewReader(z); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(files)
		if err == nil {
			err = root.MkdirAll(filepath.Dir(h.Name), 0o700)
		}
		if err == nil {
			err = root.WriteFile(h.Name, body, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// pack writes the files of a folder into an archive.
func pack(t *testing.T, dir, archive string) {
	t.Helper()
	f, err := os.OpenFile(archive, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatalf("%v: a store is never made anew; choose another name", err)
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	files := tar.NewWriter(z)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o600, Size: int64(len(body)), Format: tar.FormatPAX}
		if err := files.WriteHeader(h); err != nil {
			return err
		}
		_, err = files.Write(body)
		return err
	})
	if err := errors.Join(err, files.Close(), z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}
