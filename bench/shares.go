package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// limitsOf are the workloads that have limits.
var limitsOf = []struct{ workload, limit string }{
	{"W1", "LC"},
	{"W1b", "LCb"},
	{"W2", "LC1"},
	{"W1", "L1"},
	{"W1b", "L1b"},
	{"W1n", "L1n"},
	{"W1", "L15"},
}

// shared are the figures by which a workload is held against its limit.
var shared = []string{
	"workflows_per_second", "p50_ms", "p99_ms", "cpu_ms_per_workflow", "cpu_s.server", "cpu_s.worker", "cpu_s.load",
	"messages_per_workflow", "stored_bytes_per_workflow", "received_per_workflow", "sent_per_workflow",
}

// shares prints what the figures of a workload are divided by those of its limits, round by round, and the median of the ratios.
// It prints nothing where no limit was measured beside its workload.
func shares(out io.Writer, lines []*line) error {
	byName := map[string][]*line{}
	for _, l := range lines {
		byName[l.Workload] = append(byName[l.Workload], l)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := "\nworkload\tfigure\tmedian\tlimit\tmedian\tratio\trounds\n"
	for _, pair := range limitsOf {
		ours, theirs := byName[pair.workload], byName[pair.limit]
		rounds := min(len(ours), len(theirs))
		mine, limit, quotients := collect(ours[:rounds]), collect(theirs[:rounds]), collect(nil)
		for i := range rounds {
			one := collect(theirs[i : i+1])
			for _, f := range ours[i].figures() {
				if v := one.values[[2]string{pair.limit, f.name}]; v != nil {
					quotients.add(pair.workload, figure{f.name, f.value / v[0]})
				}
			}
		}
		for _, name := range shared {
			q := quotients.values[[2]string{pair.workload, name}]
			if len(q) == 0 {
				continue
			}
			fmt.Fprint(w, head)
			head = ""
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.3f\t%.3f\n", pair.workload, name, short(median(mine.values[[2]string{pair.workload, name}])),
				pair.limit, short(median(limit.values[[2]string{pair.limit, name}])), median(q), q)
		}
	}
	return w.Flush()
}
