package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const topText = `File: bench
Type: cpu
Duration: 1s, Total samples = 1000ms
Showing nodes accounting for 1000ms, 100% of 1000ms total
      flat  flat%   sum%        cum   cum%
     600ms 60.00% 60.00%      700ms 70.00%  github.com/droverhq/drover/broker.(*partition).loop
     100ms 10.00% 70.00%      100ms 10.00%  github.com/droverhq/drover/broker.commit
     200ms 20.00% 90.00%      200ms 20.00%  runtime.mallocgc
      90ms  9.00% 99.00%       90ms  9.00%  slices.SortFunc[go.shape.[]github.com/a/b.T,go.shape.int]
      10ms  1.00%   100%       10ms  1.00%  aeshashbody
`

func TestFlatByPackage(t *testing.T) {
	got, total := flatByPackage([]byte(topText))
	want := map[string]float64{"github.com/droverhq/drover/broker": 700, "runtime": 200, "slices": 90, "(assembly and C)": 10}
	if total != 1000 || len(got) != len(want) {
		t.Fatalf("got %v, %v in all, want %v", got, total, want)
	}
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%s: got %v ms, want %v", name, got[name], v)
		}
	}
	if order := byValue(got); order[0] != "github.com/droverhq/drover/broker" || order[3] != "(assembly and C)" {
		t.Errorf("got order %v, want the greatest first", order)
	}
}

func TestStraced(t *testing.T) {
	for _, tc := range []struct {
		text string
		want int
		err  string
	}{
		{"% time     seconds  usecs/call     calls    errors syscall\n------ ----------- ----------- --------- --------- ----------------\n 99.00    0.010000          10       123           fsync\n  1.00    0.000100          10         4         1 fdatasync\n------ ----------- ----------- --------- --------- ----------------\n100.00    0.010100          10       127         1 total\n", 127, ""},
		{"", 0, ""},
		{" 99.00 0.01 10 many fsync\n", 0, "not what it was"},
	} {
		path := filepath.Join(t.TempDir(), "summary")
		if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := straced(path)
		if tc.err == "" && (err != nil || got != tc.want) || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("%q: got %d, %v, want %d, %q", tc.text, got, err, tc.want, tc.err)
		}
	}
	if _, err := straced(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("got no error without a summary, want one")
	}
}
