package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The committed pictures are the ones that the committed lines give.
func TestCommittedCurves(t *testing.T) {
	points, err := readPoints("../docs/images/grow.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	drawn := t.TempDir()
	if err := drawAll(points, drawn); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob("../docs/images/grow-*.svg")
	if err != nil || len(names) < len(growNames()) {
		t.Fatalf("got %v, %v, want a picture of each of %v", names, err, growNames())
	}
	for _, name := range names {
		want, err := os.ReadFile(filepath.Join(drawn, filepath.Base(name)))
		if err != nil {
			t.Errorf("%s has no lines in grow.jsonl: %v", name, err)
			continue
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not what grow.jsonl gives: go run . -draw ../docs/images/grow.jsonl", name)
		}
		if len(got) > 12<<10 {
			t.Errorf("%s has %d bytes, want at most 12 KiB", name, len(got))
		}
		wellFormed(t, string(got))
	}
}

func wellFormed(t *testing.T, svg string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		switch _, err := d.Token(); {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			t.Fatalf("%v in:\n%s", err, svg)
		}
	}
}

func TestChart(t *testing.T) {
	c := &chart{title: "a & b", x: "open", panes: []pane{
		{y: "per second", curves: []curve{{"one", []dot{{10, 50}, {100, 100}, {1000, 75}}}, {"none", nil}}},
		{y: "bytes", log: true, curves: []curve{{"two", []dot{{10, 30}, {1000, 1e6}}}}},
		{y: "alone", curves: []curve{{"three", []dot{{10, 0.02}}}}},
	}}
	svg := c.svg()
	wellFormed(t, svg)
	if again := c.svg(); again != svg {
		t.Fatal("the same chart gives other bytes")
	}
	for _, want := range []string{
		`>a &amp; b<`, `prefers-color-scheme: dark`, `>1k</text>`, `>0.02</text>`, `>1M</text>`, `>per second<`,
		`d="M76 169L340 68L604 118.5"`, // 100 is at the top, and the places are as far apart as their logarithms
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("got no %s in:\n%s", want, svg)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, tc := range []struct {
		name   string
		values []float64
		log    bool
		want   []float64
	}{
		{"nothing", nil, false, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{"from 0", []float64{1400, 1522}, false, []float64{0, 500, 1000, 1500, 2000}},
		{"small", []float64{0.3, 0.55}, false, []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6}},
		{"decades", []float64{30e6, 2e9}, true, []float64{2e7, 5e7, 1e8, 2e8, 5e8, 1e9, 2e9}},
		{"many decades", []float64{3, 90_000}, true, []float64{10, 100, 1000, 10_000, 100_000}},
		{"one value", []float64{100}, true, []float64{100, 200}},
		{"no logarithm of 0", []float64{0, 10}, true, []float64{0, 2, 4, 6, 8, 10}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := scale{from: 200, to: 0, log: tc.log}
			got := s.fit(tc.values)
			if !slices.EqualFunc(got, tc.want, func(a, b float64) bool { return a == b || a/b > 0.999999 && a/b < 1.000001 }) {
				t.Fatalf("got %v, want %v", got, tc.want)
			}
			for _, v := range tc.values {
				if at := s.place(v); at < -1e-9 || at > 200+1e-9 {
					t.Errorf("%v is drawn at %v, outside of 0 to 200", v, at)
				}
			}
		})
	}
}

func TestMagnitude(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.5: "0.5", 999: "999", 1000: "1k", 16384: "16Ki", 16385: "16.39k", 128_000: "128k", 1e6: "1M", 2.5e9: "2.5G"} {
		if got := magnitude(v); got != want {
			t.Errorf("got %s for %v, want %s", got, v, want)
		}
	}
}
