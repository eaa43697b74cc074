package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// shown are the figures of a workload that the table of a sitting has; all others are in the JSON lines.
var shown = []struct {
	workloads []string
	figures   []string
}{
	{[]string{"W6"}, []string{"idle_rss_bytes", "rss_bytes.server", "ready_ms", "restart_ready_ms", "disk_bytes_per_workflow", "binary_bytes"}},
	{[]string{"W1", "W1b", "W1n"}, []string{
		"workflows_per_second", "p50_ms", "p99_ms", "cpu_ms_per_workflow", "messages_per_workflow", "received_per_workflow", "sent_per_workflow",
	}},
	{[]string{"W2"}, []string{"p50_ms", "p99_ms", "received_per_workflow", "sent_per_workflow"}},
	{[]string{"W3p", "W3s"}, []string{"wall_ms"}},
	{[]string{"W4-1", "W4-32", "W4a-1", "W4a-32"}, []string{"accepted_per_second", "all_handled_ms"}},
	{[]string{"W5"}, []string{"starts_per_second", "lag_p50_ms", "lag_p99_ms", "lag_max_ms", "asleep_rss_bytes.server"}},
	{[]string{"W7w", "W7s", "W7b"}, []string{
		"progress_ms", "progress_after_restart_ms", "each_partition_ms", "all_done_ms", "doubles", "unfinished",
	}},
}

// quiet is how much of a core others may use without a word about it.
const quiet = 0.1

// ours are the engines that the others are compared with.
var ours = []string{"drover-dev", "drover-single"}

// board prints one row for each figure of each engine: median, least and most of the rounds, and what our figure is divided by
// this one, the median of the ratios of the rounds that have both.
func board(out io.Writer, lines []*line) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "workload\tfigure\tengine\tmedian\tleast\tmost\tn")
	for _, name := range ours {
		fmt.Fprintf(w, "\t%s/it", name)
	}
	fmt.Fprintln(w)
	r := results(lines)
	for _, group := range shown {
		for _, workload := range group.workloads {
			for _, figure := range group.figures {
				r.rows(w, workload, figure)
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	disturbed, timed := 0, 0
	for _, l := range lines {
		if l.Seconds > 0 && l.NotRun == "" {
			timed++
			if l.OthersCPU > quiet*l.Seconds {
				disturbed++
			}
		}
		if l.NotRun != "" {
			fmt.Fprintf(out, "not run: %s, %s, round %d: %s\n", l.Engine, l.Workload, l.Round, l.NotRun)
		}
	}
	if disturbed > 0 {
		fmt.Fprintf(out, "others used more than %v of a core during %d of %d lines (others_cpu_s): take those for lower bounds\n", quiet, disturbed, timed)
	}
	return nil
}

// resultKey is where a figure belongs.
type resultKey struct{ workload, figure, engine string }

// resultTable are the figures of a sitting by round.
type resultTable struct {
	values  map[resultKey]map[int]float64
	engines []string // in the order of their first line
}

func results(lines []*line) *resultTable {
	r := &resultTable{values: map[resultKey]map[int]float64{}}
	for _, l := range lines {
		if l.NotRun != "" {
			continue
		}
		if !slices.Contains(r.engines, l.Engine) {
			r.engines = append(r.engines, l.Engine)
		}
		for _, f := range l.figures() {
			k := resultKey{l.Workload, f.name, l.Engine}
			if r.values[k] == nil {
				r.values[k] = map[int]float64{}
			}
			r.values[k][l.Round] = f.value
		}
	}
	slices.SortStableFunc(r.engines, func(a, b string) int {
		return slices.Index(engineNames(), a) - slices.Index(engineNames(), b)
	})
	return r
}

// rows prints a figure of a workload for each engine that has it.
func (r *resultTable) rows(out io.Writer, workload, figure string) {
	for _, engine := range r.engines {
		rounds := r.values[resultKey{workload, figure, engine}]
		if len(rounds) == 0 {
			continue
		}
		all := make([]float64, 0, len(rounds))
		for _, v := range rounds {
			all = append(all, v)
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%d", workload, figure, engine, short(median(all)), short(slices.Min(all)), short(slices.Max(all)), len(all))
		for _, name := range ours {
			fmt.Fprint(out, "\t", r.ratio(resultKey{workload, figure, name}, rounds))
		}
		fmt.Fprintln(out)
	}
}

// ratio is the median of our figures divided by theirs, round by round; a dash where there is none.
func (r *resultTable) ratio(of resultKey, rounds map[int]float64) string {
	var all []float64
	for round, theirs := range rounds {
		if v, ok := r.values[of][round]; ok && theirs != 0 {
			all = append(all, v/theirs)
		}
	}
	if len(all) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g", median(all))
}
