package chaos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// injected is a fault that was injected.
type injected struct {
	Kind   string    `json:"kind"`
	Target string    `json:"target"`
	At     time.Time `json:"at"`
	For    string    `json:"for,omitempty"`
	// Recovery is the slowest first answer of a partition after the fault; only of faults that can keep one from answering.
	Recovery string `json:"recovery,omitempty"`

	measured bool
	recovery time.Duration
}

// report is what a run has done and found.
type report struct {
	Seed      uint64         `json:"seed"`
	Topology  string         `json:"topology"`
	Took      string         `json:"took"`
	Rounds    int            `json:"rounds"`
	Workflows int            `json:"workflows"` // of plans, acknowledged and ended as they should
	Runs      int            `json:"runs"`      // in the histories
	Events    int            `json:"events"`
	OK        int            `json:"acknowledged"`
	Failed    int            `json:"failed"`
	Unknown   int            `json:"unknown"`
	Judged    int            `json:"judged"` // keys that the models judged
	Ahead     int64          `json:"ahead"`  // decisions that came with outcomes
	Undecided []string       `json:"undecided,omitempty"`
	Faults    map[string]int `json:"faults"`
	// Messages are answers lost, messages doubled and messages postponed by the proxies.
	Messages  map[string]int64 `json:"messages"`
	TakeOvers int              `json:"takeOvers"` // fences written
	Claims    int              `json:"claims"`    // taken by the claimers
	Audits    int              `json:"audits"`    // "drover audit" had to remove what was left over
	// Undeleted is how many alarms a replica of NATS had again that its leader had deleted.
	Undeleted int `json:"undeleted,omitempty"`
	// SlowestRecovery is from a fault to the first answer of the last partition.
	SlowestRecovery string `json:"slowestRecovery"`
	SlowestFault    string `json:"slowestFault"`
	// SlowestEnd is from the end of the faults of a round to the end of its last workflow.
	SlowestEnd string     `json:"slowestEnd"`
	Violations []string   `json:"violations"`
	Dir        string     `json:"dir,omitempty"`
	Injected   []injected `json:"injected"`

	mu                  sync.Mutex
	began               time.Time
	slowest, slowestEnd time.Duration
}

func newReport(seed uint64, topology string) *report {
	return &report{
		Seed: seed, Topology: topology, Faults: map[string]int{}, Messages: map[string]int64{}, Violations: []string{}, began: time.Now(),
	}
}

func (r *report) violation(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Violations = append(r.Violations, text)
}

func (r *report) fault(f injected) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Faults[f.Kind]++
	r.Injected = append(r.Injected, f)
}

// recoveries finds, for each fault that has none yet, when the last partition answered.
func (r *report) recoveries(probes map[string][]Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.Injected {
		f := &r.Injected[i]
		if f.recovery != 0 || !f.measured {
			continue
		}
		for _, ops := range probes {
			at := f.At.UnixNano()
			n := slices.IndexFunc(ops, func(o Op) bool { return o.Outcome == OK && o.Call >= at })
			if n >= 0 {
				f.recovery = max(f.recovery, time.Duration(ops[n].Return-at))
			}
		}
		f.Recovery = f.recovery.Round(time.Millisecond).String()
		if f.recovery > r.slowest {
			r.slowest, r.SlowestRecovery, r.SlowestFault = f.recovery, f.Recovery, f.Kind+" of "+f.Target
		}
	}
}

func (r *report) ended(after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slowestEnd = max(r.slowestEnd, after)
}

// String is the report for a person.
func (r *report) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Took, r.SlowestEnd = time.Since(r.began).Round(time.Second).String(), r.slowestEnd.Round(time.Millisecond).String()
	var faults []string
	total := 0
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		faults = append(faults, fmt.Sprintf("%s %d", kind, r.Faults[kind]))
		total += r.Faults[kind]
	}
	return fmt.Sprintf(`topology %s, -chaos.seed=%d, %s, %d rounds
  workflows    %d ended as they should; %d runs with %d events in the histories; %d decisions came with outcomes
  operations   %d acknowledged, %d failed, %d unknown; %d runs, ids and claims judged, %d undecided
  faults       %d: %s
  messages     %d answers lost, %d doubled, %d postponed
  take-overs   %d fences written, %d claims taken by the claimers
  slowest      recovery of a partition %s (%s), last end of a workflow %s after the faults
  audit        was needed %d times to remove what was left over; %d deleted alarms were back on a replica of NATS
  violations   %d`,
		r.Topology, r.Seed, r.Took, r.Rounds, r.Workflows, r.Runs, r.Events, r.Ahead, r.OK, r.Failed, r.Unknown, r.Judged, len(r.Undecided),
		total, strings.Join(faults, ", "), r.Messages["lost"], r.Messages["doubled"], r.Messages["postponed"],
		r.TakeOvers, r.Claims, cmp.Or(r.SlowestRecovery, "none"), cmp.Or(r.SlowestFault, "no fault"), r.SlowestEnd, r.Audits, r.Undeleted, len(r.Violations))
}

// write appends the report to a file, as a line of JSON.
func (r *report) write(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return appendTo(name, string(line)+"\n")
}
