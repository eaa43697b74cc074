package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/drovertest"
)

// scratchless makes the test fail if a scratch folder is left over.
func scratchless(t *testing.T) {
	t.Helper()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Cleanup(func() {
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("got %v and %v in the temporary folder, want nothing", left, err)
		}
	})
}

// call runs the command to its end.
func call(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

// accepted checks a manifest with the real sha256sum.
func accepted(t *testing.T, dir, manifest string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "--quiet", manifest)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("sha256sum --check: got %v and %q, want no word", err, out)
	}
}

// The example against a real server, over a folder with hostile names.
func TestManifest(t *testing.T) {
	url := drovertest.Start(t, nil).URL()
	for _, tc := range []struct {
		name  string
		stdin string
		flags []string
		want  []string
	}{
		{name: "walked", want: hostile},
		{name: "one at a time", flags: []string{"-width", "1"}, want: hostile},
		{name: "given", flags: []string{"-files-from", "-"}, stdin: strings.Join(hostile[:5], "\x00") + "\x00", want: hostile[:5]},
		{name: "with progress", flags: []string{"-progress"}, want: hostile},
	} {
		t.Run(tc.name, func(t *testing.T) {
			scratchless(t)
			dir := populate(t, hostile...)
			out := filepath.Join(dir, "SHA256SUMS") // in the folder itself
			args := append([]string{"-nats", url, "-dir", dir, "-out", out}, tc.flags...)
			code, stdout, stderr := call(t, tc.stdin, args...)
			if code != 0 || !strings.Contains(stdout, "wrote "+out) {
				t.Fatalf("got exit code %d, stdout %q, stderr %q; want 0 and the manifest's name", code, stdout, stderr)
			}
			got, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(reference(t, dir, tc.want), string(got)); diff != "" {
				t.Errorf("manifest (-sha256sum +got):\n%s", diff)
			}
			accepted(t, dir, out)
			if shown := strings.Contains(stderr, "files"); shown != (len(tc.flags) > 0 && tc.flags[0] == "-progress") {
				t.Errorf("got stderr %q, want progress only if it was asked for", stderr)
			}
		})
	}
}

func TestEmptyFolder(t *testing.T) {
	url := drovertest.Start(t, nil).URL()
	scratchless(t)
	out := filepath.Join(t.TempDir(), "sums")
	if code, stdout, stderr := call(t, "", "-nats", url, "-dir", t.TempDir(), "-out", out); code != 0 || !strings.Contains(stdout, ": 0 files, 0 bytes") {
		t.Fatalf("got exit code %d, stdout %q, stderr %q; want 0 and no files", code, stdout, stderr)
	}
	if b, err := os.ReadFile(out); err != nil || len(b) > 0 {
		t.Errorf("got %q and %v, want an empty manifest", b, err)
	}
}

// A file that cannot be read fails the workflow; the old manifest stays.
func TestMissingFile(t *testing.T) {
	url := drovertest.Start(t, nil).URL()
	scratchless(t)
	dir := populate(t, "here")
	out := filepath.Join(t.TempDir(), "sums")
	if err := os.WriteFile(out, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := call(t, "here\x00gone\x00", "-nats", url, "-dir", dir, "-out", out, "-files-from", "-", "-id", "missing")
	if code != 1 || !strings.Contains(stderr, "gone") || !strings.Contains(stderr, "drover history missing") {
		t.Errorf("got exit code %d and %q, want 1, the file and how to look further", code, stderr)
	}
	if b, err := os.ReadFile(out); err != nil || string(b) != "old" {
		t.Errorf("got %q and %v, want the old manifest", b, err)
	}
}

// A second call with the id of an open run goes on with that run, whatever its own flags say.
func TestJoin(t *testing.T) {
	url := drovertest.Start(t, nil).URL()
	scratchless(t)
	dir := populate(t, hostile...)
	out := filepath.Join(t.TempDir(), "sums")

	// A call that is ended before its work begins.
	client, err := drover.Connect(t.Context(), &drover.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	o := &options{id: "sums-1", dir: dir, out: out, width: 3}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	first, _, err := start(t.Context(), client, o, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Wait(gone); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}

	code, stdout, stderr := call(t, "", "-nats", url, "-id", "sums-1", "-dir", t.TempDir(), "-out", filepath.Join(t.TempDir(), "other"))
	if code != 0 || !strings.Contains(stdout, first.RunID) || !strings.Contains(stderr, "going on with the open run") {
		t.Fatalf("got exit code %d, stdout %q, stderr %q; want 0 and run %s", code, stdout, stderr, first.RunID)
	}
	accepted(t, dir, out)

	// The id of something else is left alone.
	if _, err := client.Start(t.Context(), "order", nil, &drover.StartOptions{ID: "order-1"}); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call(t, "", "-nats", url, "-id", "order-1", "-dir", dir, "-out", out); code != 1 || !strings.Contains(stderr, "is no manifest") {
		t.Errorf("got exit code %d and %q, want 1 and why", code, stderr)
	}
}

func TestUsage(t *testing.T) {
	scratchless(t)
	dir := populate(t, "file")
	for _, tc := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"help", []string{"-h"}, 0, "-files-from"},
		{"unknown flag", []string{"-x"}, 2, "-x"},
		{"argument", []string{"-out", "o", "x"}, 2, `argument "x" is too much`},
		{"no out", []string{"-dir", dir}, 2, "-out is missing"},
		{"width", []string{"-out", "o", "-width", "501"}, 2, "use 1 to 500"},
		{"no folder", []string{"-out", "o", "-dir", filepath.Join(dir, "file")}, 2, "is no folder"},
		{"gone", []string{"-out", "o", "-dir", filepath.Join(dir, "gone")}, 2, "no such file"},
		{"folder of out", []string{"-out", filepath.Join(dir, "gone", "o")}, 2, "no such file"},
		{"nobody there", []string{"-out", filepath.Join(dir, "o"), "-nats", "nats://127.0.0.1:1"}, 1, "127.0.0.1:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, stdout, stderr := call(t, "", tc.args...)
			if code != tc.code || stdout != "" || !strings.Contains(stderr, tc.says) {
				t.Errorf("got exit code %d, stdout %q, stderr %q; want %d, nothing, and %q", code, stdout, stderr, tc.code, tc.says)
			}
			if tc.code == 2 && strings.Count(stderr, "\n") != 1 {
				t.Errorf("got %q, want one line", stderr)
			}
		})
	}
}
