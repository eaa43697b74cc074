package visibility_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/ops/index"
	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/schemas/ops"
)

// file is where the snapshot with a workflow is.
func (h *house) file(id string) string {
	return filepath.Join(h.dir, "default."+strconv.Itoa(subject.Partition(id, partitions)))
}

// forge has a snapshot say that a workflow is of the type forged.
func (h *house) forge(id string, more func(*index.Store)) {
	h.t.Helper()
	f, err := os.Open(h.file(id))
	if err != nil {
		h.t.Fatal(err)
	}
	store, mark, err := index.Read(f)
	f.Close()
	if err != nil {
		h.t.Fatal(err)
	}
	row, _ := store.Get(id, "r1")
	row.Type = "forged"
	store.Put(&row)
	more(store)
	if f, err = os.Create(h.file(id)); err != nil {
		h.t.Fatal(err)
	}
	defer f.Close()
	if err := store.Write(f, mark); err != nil {
		h.t.Fatal(err)
	}
}

// A row that is wrong is found, told of, and mended.
func TestWrongRow(t *testing.T) {
	dir := t.TempDir()
	live(t, func(t *testing.T, h *house) {
		h.dir = dir
		x := h.newIndex()
		stop := h.begin(x)
		h.put("a", "r1", "open")
		h.put("b", "r1", "open")
		h.await(x, "ORDER BY id", "a:open, b:open")
		stop()
		h.forge("a", func(*index.Store) {})
		x = h.index()
		h.await(x, "type = forged", "a:open")
		time.Sleep(61 * time.Minute)
		h.await(x, "type = order ORDER BY id", "a:open, b:open")
		if got := h.noted(); len(got) != 1 || got[0].Kind != ops.OperationIndexWrong || !strings.Contains(got[0].Reason, `the type of run r1 of workflow "a"`) {
			t.Errorf("got %+v", got)
		}
	})
}

// An index begins with its snapshot, without the rows of runs that were purged meanwhile. One that is cut is not used.
func TestSnapshot(t *testing.T) {
	dir := t.TempDir()
	live(t, func(t *testing.T, h *house) {
		h.dir = dir
		x := h.newIndex()
		stop := h.begin(x)
		for _, id := range []string{"a", "b", "c", "d"} {
			h.put(id, "r1", "open")
			time.Sleep(time.Second)
		}
		h.await(x, "ORDER BY id", "a:open, b:open, c:open, d:open")
		stop()

		// A row that no record tells of shows that the snapshot is read.
		h.forge("a", func(store *index.Store) {
			store.Put(&query.Row{WorkflowID: "never", Run: "r1", Type: "forged", Status: "open", Started: 1, Sequence: 1})
		})
		h.purge("b", "r1")
		h.put("c", "r1", "completed")
		x = h.newIndex()
		stop = h.begin(x)
		h.await(x, "ORDER BY id", "a:open, c:completed, d:open")
		h.await(x, "type = forged", "a:open")
		stop()

		for _, id := range []string{"a", "b", "c", "d"} { // some of them are in one file
			b, err := os.ReadFile(h.file(id))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(h.file(id), b[:len(b)/2], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		x = h.index()
		h.await(x, "ORDER BY id", "a:open, c:completed, d:open")
		h.await(x, "type = forged", "")
	})
}

// A snapshot is written now and then, if there is something new.
func TestSnapshotsWhileItRuns(t *testing.T) {
	dir := t.TempDir()
	live(t, func(t *testing.T, h *house) {
		h.dir = dir
		x := h.index()
		h.put("a", "r1", "open")
		h.await(x, "", "a:open")
		time.Sleep(6 * time.Minute)
		first, err := os.Stat(h.file("a"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Minute)
		if again, err := os.Stat(h.file("a")); err != nil || !os.SameFile(first, again) {
			t.Errorf("a snapshot with nothing new was written, %v", err)
		}
		h.put("a", "r1", "completed")
		time.Sleep(6 * time.Minute)
		if again, err := os.Stat(h.file("a")); err != nil || os.SameFile(first, again) {
			t.Errorf("no snapshot with something new was written, %v", err)
		}
	})
}

// Nothing of a stream that is no more is kept, whether the index runs when it is made anew, or begins with a snapshot.
func TestAnotherStream(t *testing.T) {
	dir := t.TempDir()
	live(t, func(t *testing.T, h *house) {
		h.dir = dir
		x := h.newIndex()
		stop := h.begin(x)
		h.put("a", "r1", "open")
		h.put("b", "r1", "open")
		h.await(x, "ORDER BY id", "a:open, b:open")
		h.another()
		h.put("a", "r2", "completed")
		h.await(x, "ORDER BY id", "a:completed")
		stop()
		h.another()
		h.put("b", "r3", "failed")
		x = h.index()
		h.await(x, "ORDER BY id", "b:failed")
	})
}
