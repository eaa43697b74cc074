package docs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/droverhq/drover/ops/metrics"
)

// metricTable has all metrics, in the order of the code.
func metricTable(*testing.T) string {
	var rows [][]string
	for _, m := range metrics.Table() {
		labels := make([]string, len(m.Labels))
		for i, l := range m.Labels {
			labels[i] = "`" + l + "`"
		}
		rows = append(rows, []string{
			"`" + strings.TrimPrefix(m.Name, "drover_") + "`", string(m.Kind), strings.Join(labels, ", "), m.Help,
		})
	}
	return table([]string{"name", "kind", "labels", "what it is"}, rows)
}

// The guide says what to do about every alert that there is.
func TestAlertsAreExplained(t *testing.T) {
	b, err := os.ReadFile("../deploy/prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert string }
		}
	}
	if err := yaml.Unmarshal(b, &rules); err != nil {
		t.Fatal(err)
	}
	var alerts []string
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			alerts = append(alerts, r.Alert)
		}
	}
	same(t, "alerts", column(section(t, "run/metrics-and-alerts.md", "## Alerts"), 0), alerts)
}
