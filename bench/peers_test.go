package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// Lines as the harness prints them, shortened.
const peerOutput = `{"workload":"W6-start","peer":"temporal","version":"v1","durability":"fsync","server_ready_ms":600,"server_rss_at_ready_mb":100,"aux_rss_mb":50,"server_binary_mb":200}
{"workload":"W1","n":500,"conc":64,"wf_per_s":40,"p50_ms":531,"p99_ms":5878,"cpu_server_s":10,"cpu_worker_s":5,"cpu_db_s":4,"cpu_client_s":1,"cpu_others_s":-0.1,"wall_s":12,"server_rss_mb":300,"db_rss_mb":200,"worker_rss_mb":40,"disk_bytes_per_wf":160000}
{"workload":"W6-restart","server_ready_ms":700}`

func peerLines(t *testing.T, text string) (all []peerLine) {
	t.Helper()
	for l := range strings.Lines(text) {
		var p peerLine
		if err := json.Unmarshal([]byte(l), &p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func figuresOf(l *line) map[string]float64 {
	m := map[string]float64{}
	for _, f := range l.figures() {
		m[f.name] = f.value
	}
	return m
}

func TestTranslateW1(t *testing.T) {
	lines, err := translate("W1", peerLines(t, peerOutput))
	if err != nil || len(lines) != 2 {
		t.Fatalf("got %v, %v, want W1 and W6", lines, err)
	}
	for i, want := range []map[string]float64{
		{"workflows_per_second": 40, "p50_ms": 531, "p99_ms": 5878, "cpu_ms_per_workflow": 40, "rss_bytes.server": 500 << 20, "disk_bytes_per_workflow": 160000},
		{"ready_ms": 600, "restart_ready_ms": 700, "idle_rss_bytes": 150 << 20, "binary_bytes": 200 << 20, "rss_bytes.server": 500 << 20, "disk_bytes_per_workflow": 160000},
	} {
		got := figuresOf(lines[i])
		for name, v := range want {
			if got[name] != v {
				t.Errorf("%s %s: got %v, want %v", lines[i].Workload, name, got[name], v)
			}
		}
		if lines[i].Durability != "fsync" {
			t.Errorf("%s: got durability %q, want fsync", lines[i].Workload, lines[i].Durability)
		}
	}
	if lines, err = translate("W1b", peerLines(t, peerOutput)); err != nil || len(lines) != 1 || lines[0].Workload != "W1b" {
		t.Fatalf("W1b: got %v, %v, want one line", lines, err)
	}
}

func TestTranslate(t *testing.T) {
	for _, tc := range []struct {
		workload, text, want string
		figures              map[string]float64
	}{
		{"W3", `{"workload":"W3-fan","n":500,"runs":3,"median_ms":105}`, "W3p", map[string]float64{"wall_ms": 105}},
		{"W3", `{"workload":"W3-seq","n":1000,"runs":1,"median_ms":5000}`, "W3s", map[string]float64{"wall_ms": 5000}},
		{"W4", `{"workload":"W4","n":500,"conc":1,"send_per_s":300,"all_handled_ms":1300}`, "W4-1", map[string]float64{"accepted_per_second": 300, "all_handled_ms": 1300}},
		{"W5", `{"workload":"W5","n":5000,"start_per_s":300,"lag_p99_ms":540,"server_rss_all_sleeping_mb":768,"woken_when_last_started":0,"woken":5000}`, "W5", map[string]float64{
			"starts_per_second": 300, "lag_p99_ms": 540, "asleep_rss_bytes.server": 768 << 20,
		}},
		{"W7w", `{"workload":"W7-kill-worker","n":100,"done":98,"lost_not_found":0,"first_completion_after_kill_ms":650,"all_done_after_kill_ms":9000,"activity_runs":297}`, "W7w", map[string]float64{
			"progress_ms": 650, "progress_after_restart_ms": 450, "all_done_ms": 9000, "unfinished": 2, "doubles": 3,
		}},
		{"W7s", `{"workload":"W7-kill-server","n":100,"done":100,"lost_not_found":0,"first_completion_after_kill_ms":650,"activity_runs":300}`, "W7s", map[string]float64{
			"progress_after_restart_ms": 650, "unfinished": 0, "doubles": 0,
		}},
	} {
		lines, err := translate(tc.workload, peerLines(t, tc.text))
		if err != nil || len(lines) != 1 || lines[0].Workload != tc.want {
			t.Errorf("%s: got %v, %v, want one line of %s", tc.text, lines, err, tc.want)
			continue
		}
		got := figuresOf(lines[0])
		for name, v := range tc.figures {
			if have, ok := got[name]; !ok || have != v {
				t.Errorf("%s %s: got %v, want %v", tc.want, name, have, v)
			}
		}
	}
}

// TestTranslateLost has workflows that a server in memory forgot: they are unfinished, and nothing is said of doubles.
func TestTranslateLost(t *testing.T) {
	lines, err := translate("W7s", peerLines(t, `{"workload":"W7-kill-server","n":100,"done":100,"lost_not_found":63,"first_completion_after_kill_ms":650,"activity_runs":132}`))
	if err != nil || lines[0].Unfinished == nil || *lines[0].Unfinished != 63 || lines[0].Doubles != nil {
		t.Fatalf("got %+v, %v, want 63 unfinished and no word of doubles", lines[0], err)
	}
}

// What a harness gave up waiting for counts as not run, not as what came until then.
func TestTranslateGivesUp(t *testing.T) {
	for workload, tc := range map[string]struct{ text, want string }{
		"W5":  {`{"workload":"W5","n":5000,"start_per_s":300,"lag_p99_ms":540,"woken":12}`, "12 of 5000 sleepers woke in time"},
		"W7w": {`{"workload":"W7-kill-worker","n":100,"done":40,"first_completion_after_kill_ms":-1760000000000,"activity_runs":120}`, "none ended after the kill"},
	} {
		if lines, err := translate(workload, peerLines(t, tc.text)); err != nil || lines[0].NotRun != tc.want {
			t.Errorf("%s: got %+v, %v, want %q", workload, lines[0], err, tc.want)
		}
	}
	if lines, err := translate("W4", peerLines(t, `{"workload":"W4","n":500,"conc":1,"send_per_s":300,"send_errors":1,"last_send_error":"deadline exceeded"}`)); err != nil || lines[0].NotRun != "" {
		t.Errorf("got %+v, %v; a signal that was sent again has come", lines[0], err)
	}
}

func TestTranslateKeepsFailures(t *testing.T) {
	lines, err := translate("W1", peerLines(t, `{"workload":"W1","error":"deadline exceeded"}`))
	if err != nil || lines[0].NotRun != "deadline exceeded" || lines[0].Workload != "W1" {
		t.Fatalf("got %+v, %v, want the failure", lines[0], err)
	}
}
