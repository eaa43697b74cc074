package checker_test

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/schemas"
)

const second = schemas.Timestamp(1e9)

// records cuts a history in the short notation at its "---" lines, and chains the records as the broker does.
func records(t testing.TB, run, text string) []*schemas.Record {
	t.Helper()
	s := newScribe()
	for line := range strings.Lines(text) {
		if err := s.add(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	var all []*schemas.Record
	from := 0
	for i, to := range append(s.cuts, len(s.events)) {
		all = append(all, &schemas.Record{
			WorkflowID: "w", Run: run, First: int64(from + 1), Events: s.events[from:to], Fence: 5, SnapshotSequence: uint64(i),
			Inbox: schemas.Position{Incarnation: 1, Sequence: uint64(10 + i)}, Signals: schemas.Position{Incarnation: 1, Sequence: 100},
		})
		from = to
	}
	return all
}

// store gives records the hashes of their predecessors, encodes them, and stores one each second.
func store(t testing.TB, records []*schemas.Record) []checker.Stored {
	t.Helper()
	var stored []checker.Stored
	var previous []byte
	for i, r := range records {
		if r.Previous == nil {
			r.Previous = previous
		}
		body, err := schemas.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(body)
		previous = sum[:]
		stored = append(stored, checker.Stored{Record: r, Body: body, At: second * schemas.Timestamp(1000+i)})
	}
	return stored
}

func showRecords(all []*schemas.Record) string {
	var b strings.Builder
	for _, r := range all {
		line, err := schemas.MarshalJSON(r)
		if err != nil {
			line = []byte(err.Error())
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

const threeRecords = `
	WorkflowStarted
	DeciderScheduled
	---
	DeciderStarted
	DeciderCompleted
	TimerScheduled T startToFireTimeout=5
	Marker m
	---
	+5s TimerExpired T
	Signal s
	DeciderScheduled`

func TestRecordsPass(t *testing.T) {
	for _, decode := range []bool{false, true} {
		stored := store(t, records(t, "r", threeRecords))
		stored[2].At += 4 * second // the timer was set by the second record
		for i := range stored {
			if decode {
				stored[i].Record = nil
			}
		}
		if found := checker.CheckRecords("w", "r", stored); len(found) != 0 {
			t.Fatalf("decoded from the body: %v: %v", decode, found)
		}
	}
}

// Empty records move positions only; they may stand anywhere but at the beginning.
func TestEmptyRecordsPass(t *testing.T) {
	all := records(t, "r", threeRecords)
	empty := &schemas.Record{
		WorkflowID: "w", Run: "r", First: 3, Fence: 5, SnapshotSequence: 0,
		Inbox: schemas.Position{Incarnation: 1, Sequence: 10}, Signals: schemas.Position{Incarnation: 2, Sequence: 1},
	}
	for _, r := range all[1:] {
		r.Signals = empty.Signals
	}
	stored := store(t, slices.Insert(all, 1, empty))
	stored[3].At += 4 * second
	if found := checker.CheckRecords("w", "r", stored); len(found) != 0 {
		t.Fatal(found)
	}
}

// Without bodies and times, what depends on them is not checked, and everything else is.
func TestRecordsWithoutBodies(t *testing.T) {
	all := records(t, "r", threeRecords)
	all[2].Previous = []byte("unchecked")
	var stored []checker.Stored
	for _, r := range all {
		stored = append(stored, checker.Stored{Record: r})
	}
	if found := checker.CheckRecords("w", "r", stored); len(found) != 0 {
		t.Fatal(found)
	}
}

// illegalRecords break one rule each of a run in three records.
var illegalRecords = []struct {
	rule, name string
	before     func(r []*schemas.Record) // before hashes and bodies are made
	after      func(s []checker.Stored)  // and after
	cut        func(s []checker.Stored) []checker.Stored
}{
	{rule: checker.RuleRecord, name: "another run", before: func(r []*schemas.Record) { r[1].Run = "other" }},
	{rule: checker.RuleRecord, name: "another workflow", before: func(r []*schemas.Record) { r[1].WorkflowID = "other" }},
	{rule: checker.RuleRecord, name: "first is one too high", before: func(r []*schemas.Record) { r[2].First++ }},
	{rule: checker.RuleRecord, name: "begins with nothing", before: func(r []*schemas.Record) {
		r[1].Events, r[1].First = slices.Concat(r[0].Events, r[1].Events), 1
		r[0].Events = nil
	}},
	{rule: checker.RuleRecord, name: "one is lost", cut: func(s []checker.Stored) []checker.Stored { return slices.Delete(s, 1, 2) }},
	{rule: checker.RuleRecord, name: "one is there twice", cut: func(s []checker.Stored) []checker.Stored { return slices.Insert(s, 1, s[1]) }},
	{rule: checker.RuleRecord, name: "unreadable", after: func(s []checker.Stored) { s[1] = checker.Stored{Body: []byte("\x01\xdd\xff\xff\xff\xff")} }},
	{rule: checker.RuleRecord, name: "the last one is unreadable", after: func(s []checker.Stored) { s[2] = checker.Stored{Body: []byte{1}} }},
	{rule: checker.RuleChain, name: "another hash", before: func(r []*schemas.Record) { r[1].Previous = make([]byte, 32) }},
	{rule: checker.RuleChain, name: "no hash", before: func(r []*schemas.Record) { r[1].Previous = []byte{} }},
	{rule: checker.RuleChain, name: "first has a hash", before: func(r []*schemas.Record) { r[0].Previous = make([]byte, 32) }},
	{rule: checker.RuleChain, name: "flipped bit", after: func(s []checker.Stored) { s[0].Body[len(s[0].Body)-1] ^= 4 }},
	{rule: checker.RuleFence, name: "falls", before: func(r []*schemas.Record) { r[1].Fence = 4 }},
	{rule: checker.RuleFence, name: "lags a rise", before: func(r []*schemas.Record) { r[1].Fence = 9 }},
	{rule: checker.RulePosition, name: "inbox", before: func(r []*schemas.Record) { r[1].Inbox.Sequence = 9 }},
	{rule: checker.RulePosition, name: "signals", before: func(r []*schemas.Record) { r[2].Signals.Sequence = 99 }},
	{rule: checker.RulePosition, name: "incarnation", before: func(r []*schemas.Record) { r[2].Inbox.Incarnation, r[2].Inbox.Sequence = 0, 1000 }},
	{rule: checker.RuleSnapshot, name: "forgotten", before: func(r []*schemas.Record) { r[2].SnapshotSequence = 0 }},
	{rule: checker.RuleServerTime, name: "runs back", after: func(s []checker.Stored) { s[1].At = s[0].At - 1 }},
	{rule: checker.RuleServerTime, name: "runs back while a timer is open", after: func(s []checker.Stored) { s[2].At = s[1].At - 1 }},
	{rule: checker.RuleEarly, name: "by the server's clock", after: func(s []checker.Stored) { s[2].At = s[1].At + 5*second - 1 }},
	{rule: checker.RuleWake, name: "the wake is in the next record", before: func(r []*schemas.Record) {
		r[1].Events = append(slices.Clone(r[1].Events), r[2].Events[0])
		r[2].Events, r[2].First = r[2].Events[1:], r[2].First+1
	}, after: func(s []checker.Stored) { s[1].At += 5 * second }},
	{rule: checker.RuleDecided, name: "a decision is in the next record", before: func(r []*schemas.Record) {
		last := len(r[1].Events) - 1
		r[2].Events, r[2].First = slices.Insert(slices.Clone(r[2].Events), 0, r[1].Events[last]), r[2].First-1
		r[1].Events = r[1].Events[:last]
	}},
	{rule: checker.RuleIDs, name: "a gap inside a record", before: func(r []*schemas.Record) {
		r[1].Events = slices.Clone(r[1].Events)
		r[1].Events[3].ID++
	}},
}

// recordConsequences are what cannot but be broken too.
var recordConsequences = map[string]string{
	"one is lost":                    "ids chain timer decider-scheduled",
	"one is there twice":             "ids chain decider-started decider-closed position snapshot time timer-id wake server-time",
	"unreadable":                     "ids record chain timer decider-scheduled",
	"a gap inside a record":          "ids record timer",
	"the wake is in the next record": "early",
}

func TestIllegalRecords(t *testing.T) {
	for _, tt := range illegalRecords {
		t.Run(tt.rule+"/"+tt.name, func(t *testing.T) {
			all := records(t, "r", threeRecords)
			if tt.before != nil {
				tt.before(all)
			}
			stored := store(t, all)
			stored[2].At += 4 * second
			if tt.after != nil {
				tt.after(stored)
			}
			if tt.cut != nil {
				stored = tt.cut(stored)
			}
			checkRules(t, checker.CheckRecords("w", "r", stored), tt.rule, recordConsequences[tt.name], showRecords(all))
		})
	}
}

// A clock that was set back once is told of once, however long its times are those that were there before.
func TestServerTimeRunsBackOnce(t *testing.T) {
	stored := store(t, records(t, "r", threeRecords))
	stored[0].At += 3600 * second
	stored[2].At += 4 * second
	if found := checker.CheckRecords("w", "r", stored); len(found) != 1 || found[0].Rule != checker.RuleServerTime || found[0].EventID != 3 {
		t.Fatalf("got %v, want %s at event 3 alone", found, checker.RuleServerTime)
	}
}

// A new owner has a higher fence, and a log that lost its tail a higher incarnation with lower sequences.
func TestRecordsOfANewOwnerPass(t *testing.T) {
	all := records(t, "r", threeRecords)
	all[2].Fence, all[2].Inbox = 6, schemas.Position{Incarnation: 2, Sequence: 1}
	stored := store(t, all)
	stored[2].At += 4 * second
	if found := checker.CheckRecords("w", "r", stored); len(found) != 0 {
		t.Fatal(found)
	}
}

// A run whose first record holds no events is reported by what checks many runs too.
func TestRunsThatBeginWithNothing(t *testing.T) {
	r := &schemas.Record{WorkflowID: "w", Run: "r", First: 1}
	checkRules(t, checker.NewWorkflow("w").Record(r, nil, 0), checker.RuleRecord, "first", "")
}
