package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/droverhq/drover"
)

// line is what a workload prints. Times are in milliseconds, sizes in bytes, CPU in seconds. Counts are of type int, and
// what is measured is a float64 or an int64: see figures.
type line struct {
	Workload string `json:"workload"`
	// Engine, Version and Durability are of a sitting; NotRun is why there are no figures.
	Engine     string `json:"engine,omitempty"`
	Version    string `json:"version,omitempty"`
	Durability string `json:"durability,omitempty"`
	NotRun     string `json:"not_run,omitempty"`
	Round      int    `json:"round,omitempty"`

	Tag       string    `json:"tag,omitempty"`
	Profile   string    `json:"profile,omitempty"`
	Time      time.Time `json:"time"`
	Workflows int       `json:"workflows,omitempty"`
	Signals   int       `json:"signals,omitempty"`
	Senders   int       `json:"senders,omitempty"`
	Asleep    int       `json:"asleep,omitempty"`

	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"workflows_per_second,omitempty"`
	P50       float64 `json:"p50_ms,omitempty"`
	P99       float64 `json:"p99_ms,omitempty"`
	WallMS    float64 `json:"wall_ms,omitempty"`
	Messages  float64 `json:"messages_per_workflow,omitempty"`
	Bytes     float64 `json:"stored_bytes_per_workflow,omitempty"`
	// Received and Sent are the messages that the NATS server got from all its clients and gave to them.
	Received  float64 `json:"received_per_workflow,omitempty"`
	Sent      float64 `json:"sent_per_workflow,omitempty"`
	Disk      float64 `json:"disk_bytes_per_workflow,omitempty"`
	CPUMillis float64 `json:"cpu_ms_per_workflow,omitempty"`
	// OthersCPU is what all else on the machine used meanwhile: a line in which it is large is worth little.
	OthersCPU float64 `json:"others_cpu_s,omitempty"`

	// W4.
	Accepted       float64 `json:"accepted_per_second,omitempty"`
	HandledMS      float64 `json:"all_handled_ms,omitempty"`
	SignalMessages float64 `json:"messages_per_signal,omitempty"`
	SignalCPU      float64 `json:"cpu_ms_per_signal,omitempty"`

	// W5.
	Starts    float64          `json:"starts_per_second,omitempty"`
	LateP50   float64          `json:"late_p50_ms,omitempty"`
	LateP99   float64          `json:"late_p99_ms,omitempty"`
	LateMax   float64          `json:"late_max_ms,omitempty"`
	LagP50    float64          `json:"lag_p50_ms,omitempty"`
	LagP99    float64          `json:"lag_p99_ms,omitempty"`
	LagMax    float64          `json:"lag_max_ms,omitempty"`
	AsleepRSS map[string]int64 `json:"asleep_rss_bytes,omitempty"`
	// RestedRSS is that a second before the first one wakes, RestedSeconds after the last start.
	RestedRSS     map[string]int64 `json:"rested_rss_bytes,omitempty"`
	RestedSeconds float64          `json:"rested_seconds,omitempty"`
	// AsleepRoom is by how much the server grew for each sleeper.
	AsleepRoom float64 `json:"asleep_rss_bytes_per_workflow,omitempty"`
	// AsleepCPU is in percent of one core.
	AsleepCPU map[string]float64 `json:"asleep_cpu_percent,omitempty"`

	// WakeCPU is what each process used for a wake, in microseconds, and WakeReceived and WakeSent what the NATS server got from
	// all its clients for it, and gave to them.
	WakeCPU      map[string]float64 `json:"wake_cpu_us,omitempty"`
	WakeReceived float64            `json:"wake_received,omitempty"`
	WakeSent     float64            `json:"wake_sent,omitempty"`
	WakeRecords  float64            `json:"wake_records,omitempty"`

	// W6.
	ReadyMS   float64 `json:"ready_ms,omitempty"`
	RestartMS float64 `json:"restart_ready_ms,omitempty"`
	IdleRSS   int64   `json:"idle_rss_bytes,omitempty"`
	IdleCPU   float64 `json:"idle_cpu_percent,omitempty"`
	Binary    int64   `json:"binary_bytes,omitempty"`

	// V. IndexedMS is from the first start until the index had all, IndexRestartMS from the stop of the server until the
	// next one answered about all.
	Asked          map[string]float64 `json:"query_p50_ms,omitempty"`
	AskedMost      map[string]float64 `json:"query_max_ms,omitempty"`
	IndexedMS      float64            `json:"indexed_ms,omitempty"`
	IndexRestartMS float64            `json:"index_restart_ms,omitempty"`

	// W7. Times are from the kill. Doubles is how many activities ran more than once, Unfinished how many workflows did not
	// end; both are printed also when they are 0.
	ProgressMS float64  `json:"progress_ms,omitempty"`
	RestartGap float64  `json:"progress_after_restart_ms,omitempty"`
	EachMS     float64  `json:"each_partition_ms,omitempty"`
	AllDoneMS  float64  `json:"all_done_ms,omitempty"`
	Doubles    *float64 `json:"doubles,omitempty"`
	Unfinished *float64 `json:"unfinished,omitempty"`

	// Peer is the line of a peer's harness as it was.
	Peer json.RawMessage `json:"peer,omitempty"`

	CPU map[string]float64 `json:"cpu_s,omitempty"`
	RSS map[string]int64   `json:"rss_bytes,omitempty"`

	took []time.Duration // of each workflow, signal or start
	run  *drover.Run     // of W4
}

// account divides what two readings differ by among the workflows or signals that were run between them.
func (l *line) account(wall time.Duration, before, after *reading) {
	l.Seconds = wall.Seconds()
	l.CPU, l.RSS = map[string]float64{}, map[string]int64{}
	total := 0.0
	for p, u := range after.processes {
		l.CPU[p], l.RSS[p] = u.cpu-before.processes[p].cpu, u.rss
		total += l.CPU[p]
	}
	l.OthersCPU = max(after.busy-before.busy-total, 0)
	l.P50, l.P99 = millis(quantile(l.took, 50)), millis(quantile(l.took, 99))
	messages := float64(after.messages - before.messages)
	if n := float64(l.Signals); n > 0 {
		l.SignalMessages, l.SignalCPU = messages/n, 1000*total/n
		return
	}
	n := float64(l.Workflows)
	l.Messages, l.CPUMillis = messages/n, 1000*total/n
	l.Bytes = float64(after.bytes-before.bytes) / n
	l.Received = float64(after.traffic.received-before.traffic.received) / n
	l.Sent = float64(after.traffic.sent-before.traffic.sent) / n
	l.Disk = float64(after.disk-before.disk) / n
}

// print writes the line as JSON on standard output.
func (l *line) print() error { return json.NewEncoder(os.Stdout).Encode(l) }

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// quantile sorts what it is given.
func quantile[T cmp.Ordered](all []T, percent int) (q T) {
	if len(all) == 0 {
		return q
	}
	slices.Sort(all)
	return all[min(len(all)*percent/100, len(all)-1)]
}

// figure is one measured value of a line, under its name in JSON.
type figure struct {
	name  string
	value float64
}

// figures are the measured values of a line that are not 0, in the order of the fields.
func (l *line) figures() (all []figure) {
	var add func(name string, v reflect.Value)
	add = func(name string, v reflect.Value) {
		switch {
		case v.IsZero():
		case v.Kind() == reflect.Pointer:
			all = append(all, figure{name, v.Elem().Float()})
		case v.Kind() == reflect.Map:
			keys := v.MapKeys()
			slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
			for _, k := range keys {
				add(name+"."+k.String(), v.MapIndex(k))
			}
		case v.Kind() == reflect.Float64:
			all = append(all, figure{name, v.Float()})
		case v.Kind() == reflect.Int64:
			all = append(all, figure{name, float64(v.Int())})
		}
	}
	v := reflect.ValueOf(l).Elem()
	for i := range v.NumField() {
		if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); name != "" {
			add(name, v.Field(i))
		}
	}
	return all
}

// series are the figures of several lines, by workload and name, in the order of their first appearance.
type series struct {
	order  [][2]string
	values map[[2]string][]float64
}

func collect(lines []*line) *series {
	s := &series{values: map[[2]string][]float64{}}
	for _, l := range lines {
		for _, f := range l.figures() {
			s.add(l.Workload, f)
		}
	}
	return s
}

func (s *series) add(workload string, f figure) {
	key := [2]string{workload, f.name}
	if s.values[key] == nil {
		s.order = append(s.order, key)
	}
	s.values[key] = append(s.values[key], f.value)
}

// table prints the median of each figure, and beside it every run.
func table(out io.Writer, lines []*line) error {
	s := collect(lines)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "workload\tfigure\tmedian\truns")
	for _, key := range s.order {
		var runs strings.Builder
		for _, v := range s.values[key] {
			runs.WriteString(" " + short(v))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", key[0], key[1], short(median(s.values[key])), runs.String()[1:])
	}
	return w.Flush()
}

// median is the mean of the two in the middle when there is no middle.
func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// short writes four figures of a number, and all of a large one.
func short(v float64) string {
	if v >= 1000 || v <= -1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}
