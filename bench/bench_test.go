package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

func TestMedian(t *testing.T) {
	for _, tc := range []struct {
		all  []float64
		want float64
	}{
		{[]float64{3}, 3},
		{[]float64{3, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := median(tc.all); got != tc.want {
			t.Fatalf("median of %v: got %v, want %v", tc.all, got, tc.want)
		}
	}
}

func TestQuantile(t *testing.T) {
	for _, tc := range []struct {
		all           []int
		percent, want int
	}{
		{nil, 50, 0},
		{[]int{7}, 99, 7},
		{[]int{3, 1, 2}, 50, 2},
		{[]int{3, 1, 2}, 100, 3},
	} {
		if got := quantile(tc.all, tc.percent); got != tc.want {
			t.Fatalf("%d%% of %v: got %v, want %v", tc.percent, tc.all, got, tc.want)
		}
	}
}

func TestChosen(t *testing.T) {
	got, err := chosen("W1,W4,W5b")
	if want := "W1 W4-1 W4-32 W5b"; err != nil || strings.Join(got, " ") != want {
		t.Fatalf("got %v, %v, want %v", got, err, want)
	}
	if _, err := chosen("W1,W9"); err == nil || !strings.Contains(err.Error(), `"W9"`) {
		t.Fatalf("got %v, want an error about W9", err)
	}
	for name, all := range groups {
		for _, w := range all {
			if workloads[w].run == nil {
				t.Fatalf("group %s has %s, which is no workload", name, w)
			}
		}
	}
}

// TestFigures has the figures of a line in order, the same after a trip through JSON, and without counts.
func TestFigures(t *testing.T) {
	l := &line{Workload: "W4-1", Signals: 2000, Seconds: 1.5, Binary: 7, CPU: map[string]float64{"server": 2, "load": 1}}
	body, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var back line
	if err := json.Unmarshal(body, &back); err != nil {
		t.Fatal(err)
	}
	want := []figure{{"seconds", 1.5}, {"binary_bytes", 7}, {"cpu_s.load", 1}, {"cpu_s.server", 2}}
	for _, l := range []*line{l, &back} {
		got := l.figures()
		if len(got) != len(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
	}
}

func TestParseTraffic(t *testing.T) {
	body := `{"server":{},"data":{"account_statz":[{"acc":"$G","sent":{"msgs":7,"bytes":1},"received":{"msgs":5}}]}}`
	got, err := parseTraffic([]byte(body))
	if want := (traffic{received: 5, sent: 7}); err != nil || got != want {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "{", `{"data":{}}`, `{"data":{"account_statz":"no"}}`} {
		if _, err := parseTraffic([]byte(bad)); err == nil || !strings.Contains(err.Error(), "count messages") {
			t.Errorf("%q: got %v, want an error that says what it is for", bad, err)
		}
	}
}

// TestRatios pairs lines by their place; a figure that is missing on one side of a pair has no ratio.
func TestRatios(t *testing.T) {
	past := []*line{{Workload: "W1", Seconds: 2, P50: 10}, {Workload: "W2", Seconds: 1}, {Workload: "W1", Seconds: 4}}
	present := []*line{{Workload: "W1", Seconds: 1}, {Workload: "W2", Seconds: 3}, {Workload: "W1", Seconds: 4, P50: 10}}
	var out strings.Builder
	if err := ratios(&out, &side{name: "old", lines: past}, &side{name: "new", lines: present}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for l := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(l), " "))
	}
	want := []string{"workload figure old new new/old pairs", "W1 seconds 3 2.5 0.75 [0.50 1.00]", "W2 seconds 1 3 3.00 [3.00]"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("got %q, want %q", got, want)
	}
	if err := ratios(&out, &side{name: "old", lines: past}, &side{name: "new", lines: present[1:]}); err == nil {
		t.Fatal("got no error, want one about lines without a partner")
	}
}

func TestDormitory(t *testing.T) {
	t0 := time.Unix(1000, 0)
	timer := &schemas.TimerScheduled{TimerID: "sleep", StartToFireTimeout: schemas.Duration(30 * time.Second)}
	for _, tc := range []struct {
		name  string
		wakes time.Duration // after the record that armed the timer
		last  schemas.Attributes
		want  string // of the error
		late  float64
	}{
		{"late", 30*time.Second + 5*time.Millisecond, &schemas.WorkflowSuccess{}, "", 5},
		{"on time", 30 * time.Second, &schemas.WorkflowSuccess{}, "", 0},
		{"early", 30*time.Second - 1, &schemas.WorkflowSuccess{}, "never be early", 0},
		{"awake", 1 * time.Second, &schemas.WorkflowSuccess{}, "never be early", 0},
		{"failed", 31 * time.Second, &schemas.WorkflowFailed{}, "ended with WorkflowFailed", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := dormitory{naps: map[string]*nap{}}
			err := d.add(record("sleeper-1", timer), t0)
			if err == nil {
				err = d.add(record("sleeper-1", &schemas.TimerExpired{TimerID: "sleep"}, tc.last), t0.Add(tc.wakes))
			}
			l := &line{Workflows: 1}
			if err == nil {
				err = d.tell(l, t0.Add(time.Second), t0.Add(2*time.Second))
			}
			switch {
			case tc.want == "" && err != nil, tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Fatalf("got error %v, want %q", err, tc.want)
			case tc.want == "" && (l.LateMax != tc.late || l.Asleep != 1 || d.closed != 1):
				t.Fatalf("got %v ms late, %d asleep, %d closed, want %v, 1, 1", l.LateMax, l.Asleep, d.closed, tc.late)
			}
		})
	}
}

// With a rate the sleepers are due one after the other, whenever each was started.
func TestNap(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		b := &bench{o: options{sleep: 30 * time.Second, wakes: 100}}
		began := time.Now()
		time.Sleep(4 * time.Second)
		for i, want := range map[int]time.Duration{0: 26 * time.Second, 1: 26*time.Second + 10*time.Millisecond, 500: 31 * time.Second} {
			if got := b.nap(i, began); got != want {
				t.Errorf("sleeper %d: got %v, want %v", i, got, want)
			}
		}
		time.Sleep(time.Minute)
		if got := b.nap(0, began); got <= 0 {
			t.Errorf("one that is overdue: got %v, want more than 0", got)
		}
		b.o.wakes = 0
		if got := b.nap(500, began); got != 30*time.Second {
			t.Errorf("without a rate: got %v, want 30 s", got)
		}
	})
}

func record(id string, all ...schemas.Attributes) *schemas.Record {
	r := &schemas.Record{WorkflowID: id}
	for i, a := range all {
		r.Events = append(r.Events, schemas.Event{ID: int64(i + 1), Attributes: a})
	}
	return r
}
