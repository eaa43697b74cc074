package docs_test

import (
	"strings"
	"testing"

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
