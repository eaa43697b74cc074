package alerts

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

var parsing = parser.NewParser(parser.Options{})

// known are the metrics that a server shows and their labels, by the names of series.
func known(t *testing.T) map[string][]string {
	t.Helper()
	b, err := os.ReadFile("../../../ops/metrics/testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(b)) {
		word := strings.SplitN(line, " ", 4)
		by := strings.Split(strings.Trim(word[2], "{}"), ",")
		if word[1] != "histogram" {
			all[word[0]] = by
			continue
		}
		for _, s := range []string{"_bucket", "_sum", "_count"} {
			all[word[0]+s] = append(slices.Clone(by), "le")
		}
	}
	return all
}

// judge parses an expression and checks its names.
func judge(t *testing.T, where, expr string, series map[string][]string) {
	t.Helper()
	e, err := parsing.ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v: %s", where, err, expr)
		return
	}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		by := series[s.Name]
		if by == nil {
			t.Errorf("%s: there is no %s", where, s.Name)
		}
		for _, m := range s.LabelMatchers {
			if m.Name != labels.MetricName && m.Name != "instance" && !slices.Contains(by, m.Name) {
				t.Errorf("%s: %s has no label %s", where, s.Name, m.Name)
			}
		}
		return nil
	})
}

func TestDashboardParses(t *testing.T) {
	b, err := os.ReadFile("../../../deploy/grafana/drover.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &board); err != nil {
		t.Fatal(err)
	}
	series, n := known(t), 0
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			n++
			judge(t, p.Title, strings.NewReplacer("$__rate_interval", "5m", "$namespace", ".*").Replace(target.Expr), series)
		}
	}
	if n < 30 {
		t.Errorf("got %d expressions", n)
	}
}

// well is what a system shows that is well, over an hour.
const well = `load 1m
  drover_partitions{namespace="a", instance="1"} 2x90
  drover_partition_owned{namespace="a", partition="0", instance="1"} 1x90
  drover_partition_owned{namespace="a", partition="1", instance="2"} 1x90
  drover_master{namespace="a", instance="1"} 1x90
  drover_master{namespace="a", instance="2"} 0x90
  drover_nodes{status="ready", instance="1"} 2x90
  drover_list_oldest_seconds{namespace="a", list="l"} 4x90
  drover_list_backlog{namespace="a", list="l"} 1x90
  drover_list_oldest_seconds{namespace="a", list="long"} 4000x90
  drover_list_backlog{namespace="a", list="long"} 0x90
  drover_decisions_total{namespace="a", type="order", outcome="completed"} 0+100x90
  drover_decisions_total{namespace="a", type="order", outcome="failed"} 7x90
  drover_decisions_total{namespace="a", type="order", outcome="timedOut"} 0x90
  drover_decisions_total{namespace="a", type="order", outcome="untaken"} 0x90
  drover_runs_paused{namespace="a", cause="OPERATOR_INITIATED"} 1x90
  drover_alarm_late_seconds_bucket{namespace="a", le="0.025"} 0+5x90
  drover_alarm_late_seconds_bucket{namespace="a", le="2.5"} 0+10x90
  drover_alarm_late_seconds_bucket{namespace="a", le="30"} 0+10x90
  drover_alarm_late_seconds_bucket{namespace="a", le="+Inf"} 0+10x90
  drover_inbox_lag_seconds{namespace="a", partition="0"} 0x90
  drover_audit_findings{namespace="a", kind="waits-for-nothing", severity="notice"} 3x90
  drover_schedule_slots_total{namespace="a", schedule="s", outcome="done"} 0+1x90
  drover_schedule_slots_total{namespace="a", schedule="s", outcome="missed"} 4x90
  drover_always_on_up{namespace="a", id="d"} 1x90
  drover_store_free_bytes{instance="1"} 50e9x90
  drover_commit_refused_total{namespace="a", code="conflict"} 2x90
  drover_index_lag_records{namespace="a", instance="1"} 40x90
  drover_index_building{namespace="a", instance="1"} 1x60 0x30
`

// ill is what makes each alert fire; it is added to a system that is well, and takes the place of the series that it names.
var ill = map[string][]string{
	"DroverPartitionWithoutOwner": {
		`drover_partition_owned{namespace="a", partition="1", instance="2"} 1x40 _x50`,
		`drover_audit_findings{namespace="a", kind="partition-unowned", severity="fault"} 1x90`,
		`drover_audit_findings{namespace="a", kind="owner-silent", severity="fault"} 1x90`,
	},
	"DroverNoMaster":   {`drover_master{namespace="a", instance="1"} 1x40 0x50`},
	"DroverNodeSilent": {`drover_nodes{status="not-responding", instance="1"} 1x90`},
	"DroverTasksWait":  {`drover_list_oldest_seconds{namespace="a", list="l"} 0+60x90`},
	"DroverDeciderFails": {
		`drover_decisions_total{namespace="a", type="order", outcome="failed"} 0+1x90`,
		`drover_runs_paused{namespace="a", cause="DECIDER_ATTEMPTS_EXCEEDED"} 1x90`,
	},
	"DroverNobodyDecides": {
		`drover_decisions_total{namespace="a", type="order", outcome="untaken"} 0+1x90`,
		`drover_audit_findings{namespace="a", kind="no-decider", severity="notice"} 1x90`,
	},
	"DroverAlarmsLate": {
		`drover_alarm_late_seconds_bucket{namespace="a", le="2.5"} 0+9x90`,
		`drover_audit_findings{namespace="a", kind="alarms-overdue", severity="fault"} 1x90`,
	},
	"DroverInboxLag":     {`drover_inbox_lag_seconds{namespace="a", partition="0"} 0+10x90`},
	"DroverDeadLetters":  {`drover_dead_letters_stored{namespace="a", reason="unknown-workflow"} 1x90`},
	"DroverAuditFault":   {`drover_audit_findings{namespace="a", kind="unreadable", severity="fault"} 1x90`},
	"DroverSlotsMissed":  {`drover_schedule_slots_total{namespace="a", schedule="s", outcome="missed"} 4x60 5x30`},
	"DroverAlwaysOnDown": {`drover_always_on_up{namespace="a", id="d"} 1x40 0x50`},
	"DroverDiskFills":    {`drover_store_free_bytes{instance="1"} 50e9-1e9x90`},
	"DroverIndexLag": {
		`drover_index_lag_records{namespace="a", instance="1"} 0+1000x90`,
		`drover_index_building{namespace="a", instance="1"} 1x90`,
	},
	"DroverCommitsRefused": {`drover_commit_refused_total{namespace="a", code="conflict"} 0+1x90`},
}

// loaded is what a system shows, with a series in the place of that of the same name, or added.
func loaded(series string) string {
	of, _, _ := strings.Cut(series, "} ")
	var kept []string
	for line := range strings.Lines(well) {
		if series == "" || !strings.HasPrefix(strings.TrimSpace(line), of+"} ") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "") + "  " + series + "\n"
}

func TestAlerts(t *testing.T) {
	groups, errs := rulefmt.ParseFile("../../../deploy/prometheus/rules.yml", false, model.UTF8Validation, parsing, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	fires := func(expr, load string) bool {
		q, err := engine.NewInstantQuery(t.Context(), promqltest.LoadedStorage(t, load), promql.NewPrometheusQueryOpts(false, 0, nil),
			expr, time.Unix(0, 0).Add(80*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		r := q.Exec(t.Context())
		v, err := r.Vector()
		if err != nil {
			t.Fatal(err)
		}
		return len(v) > 0
	}
	series := known(t)
	for _, r := range groups.Groups[0].Rules {
		t.Run(r.Alert, func(t *testing.T) {
			judge(t, r.Alert, r.Expr, series)
			if fires(r.Expr, loaded("")) {
				t.Error("it fires on a system that is well")
			}
			if len(ill[r.Alert]) == 0 {
				t.Error("nothing makes it fire here")
			}
			for _, s := range ill[r.Alert] {
				if !fires(r.Expr, loaded(s)) {
					t.Errorf("it does not fire on %s", s)
				}
			}
			delete(ill, r.Alert)
		})
	}
	for alert := range ill {
		t.Errorf("there is no %s", alert)
	}
}
