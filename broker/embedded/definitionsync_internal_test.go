package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A look finds every definition that was written or replaced since the last one, though it reads only the folders whose
// time has changed.
func TestKeeperFindsNews(t *testing.T) {
	dir := t.TempDir()
	k := newDefinitionSyncer(dir, &defined{path: filepath.Join(dir, definedFile)})
	streams := filepath.Join(k.dir, "$G", "streams")
	write := func(folder, name string) {
		t.Helper()
		folder = filepath.Join(streams, folder)
		if err := os.MkdirAll(filepath.Join(folder, "obs"), 0o700); err != nil {
			t.Fatal(err)
		}
		tmp := filepath.Join(folder, name+".tmp")
		if err := os.WriteFile(tmp, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(tmp, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	keep := func() {
		t.Helper()
		if err := k.syncAll(); err != nil {
			t.Fatal(err)
		}
	}
	wantSynced := func(folder, name string) {
		t.Helper()
		folder = filepath.Join(streams, folder)
		fi, err := os.Stat(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if f := k.folders[folder]; f == nil || !f.synced[name].Equal(fi.ModTime()) {
			t.Fatalf("%s of %s: got %+v, want it synced as of %v", name, folder, f, fi.ModTime())
		}
	}
	age := func(by time.Duration) { // of all folders, as if nothing had happened for so long
		t.Helper()
		at := time.Now().Add(-by)
		for folder := range k.folders {
			if err := os.Chtimes(folder, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	keep() // nothing is there yet
	write("a", "meta.inf")
	write("a/obs/c", "meta.inf")
	keep()
	wantSynced("a", "meta.inf")
	wantSynced("a/obs/c", "meta.inf")

	write("a", "meta.sum") // at once: the folder's time may be the same
	keep()
	wantSynced("a", "meta.sum")

	age(time.Hour)
	keep()
	for folder, f := range k.folders {
		if f.changed.IsZero() {
			t.Fatalf("%s is read in every look", folder)
		}
	}
	write("a/obs/c", "meta.inf")
	write("a/obs/d", "meta.inf")
	write("b", "meta.inf")
	keep()
	wantSynced("a/obs/c", "meta.inf")
	wantSynced("a/obs/d", "meta.inf")
	wantSynced("b", "meta.inf")

	if err := os.RemoveAll(filepath.Join(streams, "a")); err != nil {
		t.Fatal(err)
	}
	keep()
	for folder := range k.folders {
		if strings.HasPrefix(folder, filepath.Join(streams, "a")) {
			t.Fatalf("%s is gone and not forgotten", folder)
		}
	}
	wantSynced("b", "meta.inf")
}
