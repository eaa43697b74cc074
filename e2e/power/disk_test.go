//go:build linux

package power_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/e2e/power"
)

// disk mounts one for the test. Root without FUSE is a failure: there the power cut would silently be tested nowhere.
func disk(t *testing.T, o power.Options) (*power.Disk, string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a mount of its own needs root")
	}
	dir := t.TempDir()
	d, err := power.Mount(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put writes a file, synced or not.
func put(t *testing.T, path, text string, flags int, sync bool) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flags, 0o600)
	must(t, err)
	_, err = f.WriteString(text)
	must(t, err)
	if sync {
		must(t, f.Sync())
	}
	must(t, f.Close())
}

func syncDir(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Open(dir)
	must(t, err)
	must(t, f.Sync())
	must(t, f.Close())
}

// contents is everything on the disk, by path.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		got[strings.TrimPrefix(path, dir+"/")] = string(b)
		return err
	}))
	return got
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		name            string
		do              func(t *testing.T, dir string)
		seen            map[string]string
		journal, strict map[string]string
	}{
		{
			"what was not synced is gone",
			func(t *testing.T, dir string) { put(t, dir+"/a", "a", 0, false) },
			map[string]string{"a": "a"},
			map[string]string{},
			map[string]string{},
		},
		{
			"fsync makes data durable, and in a journal the name",
			func(t *testing.T, dir string) { put(t, dir+"/a", "a", 0, true) },
			map[string]string{"a": "a"},
			map[string]string{"a": "a"},
			map[string]string{},
		},
		{
			"fsync and the folder",
			func(t *testing.T, dir string) { put(t, dir+"/a", "a", 0, true); syncDir(t, dir) },
			map[string]string{"a": "a"},
			map[string]string{"a": "a"},
			map[string]string{"a": "a"},
		},
		{
			"O_SYNC is fsync",
			func(t *testing.T, dir string) { put(t, dir+"/a", "a", os.O_SYNC, false); syncDir(t, dir) },
			map[string]string{"a": "a"},
			map[string]string{"a": "a"},
			map[string]string{"a": "a"},
		},
		{
			"a journal commits names without their data",
			func(t *testing.T, dir string) { put(t, dir+"/a", "a", 0, false); put(t, dir+"/b", "b", 0, true) },
			map[string]string{"a": "a", "b": "b"},
			map[string]string{"a": "", "b": "b"},
			map[string]string{},
		},
		{
			"an overwritten file keeps what was synced",
			func(t *testing.T, dir string) {
				put(t, dir+"/a", "one", 0, true)
				syncDir(t, dir)
				put(t, dir+"/a", "TW", 0, false)
			},
			map[string]string{"a": "TWe"},
			map[string]string{"a": "one"},
			map[string]string{"a": "one"},
		},
		{
			"a truncation is a change of the journal",
			func(t *testing.T, dir string) {
				put(t, dir+"/a", "one", 0, true)
				syncDir(t, dir)
				put(t, dir+"/a", "two", os.O_TRUNC, false)
				put(t, dir+"/b", "b", 0, true)
			},
			map[string]string{"a": "two", "b": "b"},
			map[string]string{"a": "", "b": "b"},
			map[string]string{"a": "one"},
		},
		{
			"a rename is one change, and the old file stays without it",
			func(t *testing.T, dir string) {
				put(t, dir+"/a", "old", 0, true)
				syncDir(t, dir)
				put(t, dir+"/tmp", "new", 0, true)
				must(t, os.Rename(dir+"/tmp", dir+"/a"))
			},
			map[string]string{"a": "new"},
			map[string]string{"a": "old", "tmp": "new"},
			map[string]string{"a": "old"},
		},
		{
			"a rename with its folder",
			func(t *testing.T, dir string) {
				put(t, dir+"/a", "old", 0, true)
				put(t, dir+"/tmp", "new", 0, true)
				must(t, os.Rename(dir+"/tmp", dir+"/a"))
				syncDir(t, dir)
			},
			map[string]string{"a": "new"},
			map[string]string{"a": "new"},
			map[string]string{"a": "new"},
		},
		{
			"what was removed comes back, and a folder in a folder",
			func(t *testing.T, dir string) {
				must(t, os.MkdirAll(dir+"/x/y", 0o700))
				put(t, dir+"/x/y/a", "a", 0, true)
				for _, d := range []string{"/x/y", "/x", ""} {
					syncDir(t, dir+d)
				}
				must(t, os.RemoveAll(dir+"/x"))
			},
			map[string]string{},
			map[string]string{"x/y/a": "a"},
			map[string]string{"x/y/a": "a"},
		},
	} {
		for mode, want := range map[power.Mode]map[string]string{power.Journal: tt.journal, power.Strict: tt.strict} {
			t.Run(tt.name, func(t *testing.T) {
				d, dir := disk(t, power.Options{Mode: mode})
				tt.do(t, dir)
				if diff := cmp.Diff(tt.seen, contents(t, dir)); diff != "" {
					t.Fatalf("before the cut (-want +got):\n%s", diff)
				}
				must(t, d.Cut(nil))
				if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
					t.Fatalf("mode %d, after the cut (-want +got):\n%s", mode, diff)
				}
				put(t, dir+"/again", "it can be written", 0, true)
			})
		}
	}
}

// From the moment of the cut nothing succeeds, so that nothing can be acknowledged.
func TestFreeze(t *testing.T) {
	d, dir := disk(t, power.Options{})
	f, err := os.Create(dir + "/a")
	must(t, err)
	defer f.Close()
	_, err = f.WriteString("before")
	must(t, err)
	must(t, f.Sync())
	_, err = f.WriteString(" and after")
	must(t, err)
	d.Freeze()
	_, writeErr := f.WriteString("more")
	_, createErr := os.Create(dir + "/b")
	for what, err := range map[string]error{
		"write": writeErr, "fsync": f.Sync(), "truncate": f.Truncate(0), "create": createErr,
		"remove": os.Remove(dir + "/a"), "rename": os.Rename(dir+"/a", dir+"/b"), "mkdir": os.Mkdir(dir+"/c", 0o700),
	} {
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: got %v, want an I/O error", what, err)
		}
	}
	must(t, f.Close())
	must(t, d.Cut(nil))
	if diff := cmp.Diff(map[string]string{"a": "before"}, contents(t, dir)); diff != "" {
		t.Fatalf("after the cut (-want +got):\n%s", diff)
	}
}

// Whatever the dice say, what was synced is there, and the same dice say the same.
func TestDice(t *testing.T) {
	for seed := range uint64(64) {
		var first map[string]string
		for range 2 {
			d, dir := disk(t, power.Options{})
			f, err := os.Create(dir + "/a")
			must(t, err)
			_, err = f.WriteString("synced.")
			must(t, err)
			must(t, f.Sync())
			for range 3 {
				_, err = f.WriteString("volatile.")
				must(t, err)
			}
			must(t, f.Close())
			put(t, dir+"/b", "b", 0, false)
			must(t, d.Cut(rand.New(rand.NewPCG(seed, 0))))
			got := contents(t, dir)
			if !strings.HasPrefix(got["a"], "synced.") {
				t.Fatalf("seed %d: got %q, want all that was synced", seed, got["a"])
			}
			if first == nil {
				first = got
			} else if diff := cmp.Diff(first, got); diff != "" {
				t.Fatalf("seed %d twice:\n%s", seed, diff)
			}
		}
	}
}
