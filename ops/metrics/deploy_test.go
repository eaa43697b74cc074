package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/droverhq/drover/broker/stats"
	"github.com/droverhq/drover/ops/audit"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// rule is an alert of deploy/prometheus/rules.yml.
type rule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T) []rule {
	t.Helper()
	b, err := os.ReadFile("../../deploy/prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	if err := yaml.UnmarshalWithOptions(b, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) < 10 {
		t.Fatalf("got %d groups", len(file.Groups))
	}
	return file.Groups[0].Rules
}

// panels are the expressions of the dashboard, by the title of their panel.
func panels(t *testing.T) map[string][]string {
	t.Helper()
	b, err := os.ReadFile("../../deploy/grafana/drover.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Title  string
		UID    string
		Panels []struct {
			ID      int
			Title   string
			Type    string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &board); err != nil {
		t.Fatal(err)
	}
	all, ids := map[string][]string{}, map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || all[p.Title] != nil || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q: its id and title must be its own, and it must fit", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			all[p.Title] = append(all[p.Title], target.Expr)
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
	}
	return all
}

// values are those that a label of a metric can have, as far as they are known.
func values(m *Metric, label string) []string {
	var all []string
	switch label {
	case "outcome":
		switch m {
		case decisions:
			return stats.DecisionOutcomes[:]
		case activities:
			return stats.ActivityOutcomes[:]
		case scheduleSlots:
			for _, o := range []ops.SlotOutcome{ops.SlotDone, ops.SlotFailed, ops.SlotSkipped, ops.SlotMissed, ops.SlotOverrun, ops.SlotRefused} {
				all = append(all, string(o))
			}
		}
	case "status":
		for _, s := range []schemas.NodeStatus{schemas.NodeRecovering, schemas.NodeReady, schemas.NodeDraining, schemas.NodeNotResponding, schemas.NodeUnexpectedShutdown} {
			all = append(all, string(s))
		}
	case "kind":
		for _, k := range []audit.Kind{audit.KindPartitionUnowned, audit.KindOwnerSilent, audit.KindNoDecider, audit.KindAlarmsOverdue, audit.KindAlarmsUnowned} {
			all = append(all, string(k))
		}
	case "severity":
		all = []string{string(audit.Fault), string(audit.Warning), string(audit.Notice)}
	case "cause":
		all = []string{string(schemas.CauseDeciderAttempts), string(schemas.CauseOperatorInitiated)}
	}
	return all
}

var (
	name     = regexp.MustCompile(`drover_[a-z0-9_]+`)
	selector = regexp.MustCompile(`(drover_[a-z0-9_]+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`^([a-z_]+)(=~|!~|!=|=)"([^"]*)"$`)
	grouping = regexp.MustCompile(`\b(by|without|on|ignoring)\s*\(([^)]*)\)`)
	used     = regexp.MustCompile(`\$labels\.([a-z_]+)`)
)

// metricOf is the metric of a series, which for a histogram has another name; nil if there is none.
func metricOf(series string) *Metric {
	for _, m := range table {
		bare := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(series, "_bucket"), "_sum"), "_count")
		if m.Kind != Histogram && m.Name == series || m.Kind == Histogram && series != bare && m.Name == bare {
			return m
		}
	}
	return nil
}

// judge checks the names in an expression. It reads no PromQL.
func judge(t *testing.T, where, expr string) {
	t.Helper()
	labels := []string{"le", "instance"}
	for _, series := range name.FindAllString(expr, -1) {
		m := metricOf(series)
		if m == nil {
			t.Errorf("%s: there is no %s", where, series)
			continue
		}
		labels = append(labels, m.Labels...)
		if m.Kind == Gauge && regexp.MustCompile(`(rate|increase)\(`+series+`\b`).MatchString(expr) {
			t.Errorf("%s: %s is a gauge", where, series)
		}
	}
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		m := metricOf(s[1])
		for part := range strings.SplitSeq(s[2], ",") {
			by := matcher.FindStringSubmatch(strings.TrimSpace(part))
			if by == nil || m == nil || !slices.Contains(m.Labels, by[1]) {
				t.Errorf("%s: %s has no label for %s", where, s[1], part)
				continue
			}
			if by[1] == "namespace" {
				continue
			}
			for value := range strings.SplitSeq(by[3], "|") {
				if !slices.Contains(values(m, by[1]), value) {
					t.Errorf("%s: %s of %s never is %q", where, by[1], s[1], value)
				}
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(g[2], ",") {
			if label = strings.TrimSpace(label); !slices.Contains(labels, label) {
				t.Errorf("%s: nothing has a label %s", where, label)
			}
		}
	}
}

// Alerts name metrics, labels and values that there are, and say what has happened.
func TestAlerts(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range alerts(t) {
		judge(t, r.Alert, r.Expr)
		if seen[r.Alert] || !strings.HasPrefix(r.Alert, "Drover") {
			t.Errorf("%s: want names of our own", r.Alert)
		}
		seen[r.Alert] = true
		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: got %v and %v, want a severity, what has happened and what to do", r.Alert, r.Labels, r.Annotations)
		}
		for _, l := range used.FindAllStringSubmatch(r.Annotations["summary"], -1) {
			if !slices.ContainsFunc(grouping.FindAllStringSubmatch(r.Expr, -1), func(g []string) bool {
				return slices.Contains(strings.Split(strings.ReplaceAll(g[2], " ", ""), ","), l[1])
			}) {
				t.Errorf("%s: the summary names the label %s, which the expression does not keep", r.Alert, l[1])
			}
		}
	}
}

// The dashboard shows each metric, and none that there is not.
func TestDashboard(t *testing.T) {
	shown := map[*Metric]bool{}
	for title, exprs := range panels(t) {
		for _, expr := range exprs {
			judge(t, title, expr)
			for _, series := range name.FindAllString(expr, -1) {
				shown[metricOf(series)] = true
			}
		}
	}
	for _, m := range table {
		if !shown[m] {
			t.Errorf("no panel shows %s", m.Name)
		}
	}
}
