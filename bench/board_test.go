package main

import (
	"strings"
	"testing"
)

// rows are the lines of a table, with single spaces.
func rows(text string) (all []string) {
	for l := range strings.Lines(text) {
		all = append(all, strings.Join(strings.Fields(l), " "))
	}
	return all
}

func TestBoard(t *testing.T) {
	none, two := 0.0, 2.0
	lines := []*line{
		{Engine: "restate-run", Round: 1, Workload: "W1", PerSecond: 100},
		{Engine: "drover-dev", Round: 1, Workload: "W1", PerSecond: 1000, Seconds: 2, OthersCPU: 1},
		{Engine: "drover-dev", Round: 2, Workload: "W1", PerSecond: 1200, Seconds: 2},
		{Engine: "restate-run", Round: 2, Workload: "W1", PerSecond: 400},
		{Engine: "drover-single", Round: 1, Workload: "W1", PerSecond: 4000},
		{Engine: "drover-dev", Round: 1, Workload: "W7w", Doubles: &none},
		{Engine: "restate-run", Round: 1, Workload: "W7w", Doubles: &two},
		{Engine: "temporal-pg", Workload: "all", NotRun: "Postgres is not installed"},
		{Engine: "restate-run", Round: 2, Workload: "W5", NotRun: "too slow", Starts: 7},
	}
	var out strings.Builder
	if err := board(&out, lines); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"workload figure engine median least most n drover-dev/it drover-single/it",
		"W1 workflows_per_second drover-dev 1100 1000 1200 2 1 4",
		"W1 workflows_per_second drover-single 4000 4000 4000 1 0.25 1",
		"W1 workflows_per_second restate-run 250 100 400 2 6.5 40",
		"W7w doubles drover-dev 0 0 0 1 - -",
		"W7w doubles restate-run 2 2 2 1 0 -",
		"not run: temporal-pg, all, round 0: Postgres is not installed",
		"not run: restate-run, W5, round 2: too slow",
		"others used more than 0.1 of a core during 1 of 2 lines (others_cpu_s): take those for lower bounds",
	}
	got := rows(out.String())
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestShownFiguresExist holds the table against the fields of a line.
func TestShownFiguresExist(t *testing.T) {
	one := 1.0
	l := &line{
		PerSecond: 1, Received: 1, Sent: 1, P50: 1, P99: 1, WallMS: 1, Messages: 1, Disk: 1, CPUMillis: 1,
		Accepted: 1, HandledMS: 1, Starts: 1, LateP50: 1, LateP99: 1, LateMax: 1, LagP50: 1, LagP99: 1, LagMax: 1, AsleepRSS: map[string]int64{"server": 1},
		ReadyMS: 1, RestartMS: 1, IdleRSS: 1, Binary: 1, ProgressMS: 1, RestartGap: 1, EachMS: 1, AllDoneMS: 1, Doubles: &one,
		Unfinished: &one, RSS: map[string]int64{"server": 1},
	}
	has := map[string]bool{}
	for _, f := range l.figures() {
		has[f.name] = true
	}
	for _, group := range shown {
		for _, name := range group.figures {
			if !has[name] {
				t.Errorf("%v: no figure has the name %s", group.workloads, name)
			}
		}
	}
}

func TestEnginesKnowTheirWorkloads(t *testing.T) {
	for _, e := range engines() {
		if e.layout == "" {
			t.Errorf("%s does not say which processes there are", e.name)
		}
		for name, own := range e.workloads {
			peer := e.prepare != nil
			if _, err := chosen(own); err != nil && !peer {
				t.Errorf("%s: %v", e.name, err)
			}
			found := false
			for _, n := range sittingOrder {
				found = found || n == name
			}
			if !found {
				t.Errorf("%s has %s, which has no place in a sitting", e.name, name)
			}
		}
	}
}
