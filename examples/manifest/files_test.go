package main

import (
	"bytes"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hostile are names that a careless program gets wrong.
var hostile = []string{
	"plain", "with space", " leading and trailing ", "new\nline", "\n", `back\slash`, `\`, `\n`, "carriage\rreturn", "\r", "tab\t",
	"*star", "#comment", "-", "--help", "-c", "$(id)", "`id`", "'quote'", `"double"`, "ünïcödé", "not \xff\xfe UTF-8",
	"SHA256 (x) = y", "\x01\x1b[31m", strings.Repeat("n", 255), "dir/inside", "dir/sub dir\n/deep \\ one", ".hidden", "..dots", "~",
}

// populate fills a new folder with files of these names.
func populate(t *testing.T, names ...string) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.Repeat([]byte(name), i), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// reference is what the real sha256sum writes.
func reference(t *testing.T, dir string, names []string) string {
	t.Helper()
	names = slices.Sorted(slices.Values(names))
	for i, name := range names {
		if name == "-" {
			names[i] = "./-" // else it reads its standard input
		}
	}
	cmd := exec.CommandContext(t.Context(), "sha256sum", append([]string{"--"}, names...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("sha256sum: %v", err)
	}
	return string(out)
}

func TestSumLine(t *testing.T) {
	dir := populate(t, hostile...)
	var got strings.Builder
	for _, name := range slices.Sorted(slices.Values(hostile)) {
		digest, _, err := digestOf(t.Context(), dir, name)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString(sumLine(digest, name))
	}
	if diff := cmp.Diff(reference(t, dir, hostile), got.String()); diff != "" {
		t.Errorf("manifest (-sha256sum +got):\n%s", diff)
	}
}

func TestNames(t *testing.T) {
	for _, names := range [][]string{nil, {"a"}, hostile} {
		scratch := t.TempDir()
		file, err := writeNames(scratch, names)
		if err != nil {
			t.Fatal(err)
		}
		for n, want := range names {
			if got, err := nameAt(scratch, file, n); err != nil || got != want {
				t.Errorf("number %d: got %q and %v, want %q", n, got, err, want)
			}
		}
		for _, n := range []int{-1, len(names)} {
			if got, err := nameAt(scratch, file, n); err == nil {
				t.Errorf("number %d of %d: got %q, want an error", n, len(names), got)
			}
		}
		again, err := writeNames(scratch, names)
		if err != nil || again == file {
			t.Errorf("got listing %q and %v beside %q, want a file of its own", again, err, file)
		}
	}
}

func TestSums(t *testing.T) {
	scratch := t.TempDir()
	names := []string{"a", "b", "c"}
	file, err := writeNames(scratch, names)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 0, 2} { // in any order, and twice
		digest := sha256.Sum256([]byte(names[n]))
		if err := storeSum(scratch, n, digest[:]); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	collect := func(name string, digest []byte) error {
		if want := sha256.Sum256([]byte(name)); !bytes.Equal(digest, want[:]) {
			t.Errorf("%s: got %x, want %x", name, digest, want)
		}
		got = append(got, name)
		return nil
	}
	if err := eachSum(scratch, file, collect); err == nil || !strings.Contains(err.Error(), `no digest of "b"`) {
		t.Errorf("got %v, want an error that names b", err)
	}
	digest := sha256.Sum256([]byte("b"))
	if err := storeSum(scratch, 1, digest[:]); err != nil {
		t.Fatal(err)
	}
	got = nil
	if err := eachSum(scratch, file, collect); err != nil || !slices.Equal(got, names) {
		t.Errorf("got %q and %v, want %q", got, err, names)
	}
}

func TestListWalks(t *testing.T) {
	dir := populate(t, hostile...)
	out := filepath.Join(dir, "dir", "SHA256SUMS")
	for _, err := range []error{
		os.WriteFile(out, []byte("of an earlier run"), 0o600),
		os.Symlink("plain", filepath.Join(dir, "link")),
		os.Symlink("nowhere", filepath.Join(dir, "broken link")),
		os.Symlink(dir, filepath.Join(dir, "loop")),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
		os.Mkdir(filepath.Join(dir, "empty"), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	checkList(t, request{Dir: dir, Out: out, Scratch: t.TempDir()}, hostile)
}

func TestListGiven(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		name, given string
		want        []string
		says        string
	}{
		{name: "nothing"},
		{name: "sorted, once", given: "b\x00a\x00b\x00", want: []string{"a", "b"}},
		{name: "without the last NUL", given: "a\x00b", want: []string{"a", "b"}},
		{name: "new lines are names", given: "a\nb\x00", want: []string{"a\nb"}},
		{name: "not the manifest itself", given: "a\x00OUT\x00./OUT\x00", want: []string{"a"}},
		{name: "up", given: "a\x00../b\x00", says: `"../b" leads out`},
		{name: "up in the middle", given: "a/../../b\x00", says: "leads out"},
		{name: "absolute", given: "/etc/passwd\x00", says: "leads out"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := request{Dir: dir, Out: filepath.Join(dir, "OUT"), Scratch: t.TempDir(), Given: true}
			if err := os.WriteFile(filepath.Join(r.Scratch, givenFile), []byte(tc.given), 0o600); err != nil {
				t.Fatal(err)
			}
			if tc.says == "" {
				checkList(t, r, tc.want)
				return
			}
			if _, err := list(t.Context(), r); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want an error that says %q", err, tc.says)
			}
		})
	}
}

// checkList runs the list activity and compares what it found.
func checkList(t *testing.T, r request, want []string) {
	t.Helper()
	l, err := list(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for n := range l.Files {
		name, err := nameAt(r.Scratch, l.Names, n)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, name)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestDigestRefuses(t *testing.T) {
	dir := populate(t, "in/file")
	outside := populate(t, "secret")
	for _, err := range []error{
		os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "out")),
		os.Symlink("in/file", filepath.Join(dir, "link")),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ name, says string }{
		{"in", "no regular file"}, {"pipe", "no regular file"}, {"gone", "no such file"}, {"out", "escapes"}, {"../x", "escapes"},
	} {
		if _, _, err := digestOf(t.Context(), dir, tc.name); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %v, want an error that says %q", tc.name, err, tc.says)
		}
	}
	if _, _, err := digestOf(t.Context(), dir, "link"); err != nil {
		t.Errorf("a link that stays inside: got %v, want none", err)
	}
}
