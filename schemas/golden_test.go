package schemas_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// base is the time of the golden messages: 2024-05-06 07:08:09.123456789 UTC.
const base schemas.Timestamp = 1714979289123456789

// s144 is the history of an empty run, requirement S1-44.
func s144() []schemas.Event {
	return []schemas.Event{
		{ID: 1, Time: base, Attributes: &schemas.WorkflowStarted{
			WorkflowID: "order-17", Run: "01HX5S0000000000000000000A", WorkflowType: "order", Input: schemas.Text(`{"amount":12.50}`),
			ExecutionStartToCloseTimeout: schemas.Seconds(31536000), RequestID: "req-1",
		}},
		{ID: 2, Time: base, Attributes: &schemas.DeciderScheduled{StartToCloseTimeout: schemas.Seconds(10), Attempt: 1}},
		{ID: 3, Time: base + 1e6, Attributes: &schemas.DeciderStarted{ScheduledEventID: 2, Identity: "decider-1"}},
		{ID: 4, Time: base + 2e6, Attributes: &schemas.DeciderCompleted{
			ScheduledEventID: 2, StartedEventID: 3, ExecutionContext: schemas.Text("step 1"), ReplyDigest: "9f86d081",
		}},
		{ID: 5, Time: base + 2e6, Attributes: &schemas.WorkflowSuccess{Result: schemas.Text(`"done"`), DeciderCompletedEventID: 4}},
	}
}

// golden are the messages whose bytes are frozen: a stored history, and what other languages read and write.
func golden(t *testing.T) map[string]any {
	return map[string]any{
		"record-s1-44": &schemas.Record{
			WorkflowID: "order-17", Run: "01HX5S0000000000000000000A", First: 1, Events: s144(),
			Inbox:   schemas.Position{Incarnation: 1, Sequence: 77, Time: base - 5},
			Signals: schemas.Position{Incarnation: 2, Sequence: 1 << 40, Time: base - 9},
			Fence:   4711, Previous: bytes.Repeat([]byte{0xab, 0x01}, 16), SnapshotSequence: 70, Snapshot: []byte{1, 0x80},
		},
		"record-events": &schemas.Record{
			WorkflowID: "w", Run: "r", First: 1, Events: filledEvents(t), Inbox: schemas.Position{Sequence: 9, Time: 1_700_000_000_000_000_000}, Fence: 3,
		},
		"record-empty": &schemas.Record{WorkflowID: "w", Run: "r", First: 6, Inbox: schemas.Position{Sequence: 9}},
		"decision-task": &schemas.DecisionTask{
			V: 1, Namespace: "default", WorkflowID: "order-17", Run: "01HX5S0000000000000000000A", Type: "order",
			PreviousStartedID: 0, StartedID: 3, Token: "01HX5S0000000000000000000A/3", Events: s144()[:3], Attempt: 1,
			Deadline: base + 10e9, Base: &schemas.DecisionBase{CompletedID: 4, Digest: "9f86d081"},
		},
		"decision-reply": &schemas.DecisionReply{
			V: 1, Token: "01HX5S0000000000000000000A/3", Context: schemas.Payload{0xff, 0xfe}, Identity: "decider-1",
			Decisions: []schemas.Decision{
				schemas.Decide(&schemas.ScheduleActivity{
					ActivityID: "charge", ActivityType: "charge-card", List: "PCI", Input: schemas.Text("plain"),
					StartToCloseTimeout: schemas.Seconds(90), HeartbeatTimeout: schemas.Seconds(0.5), ScheduleToStartTimeout: schemas.Unlimited,
					NotIdempotent: true, Retry: &schemas.RetryPolicy{InitialInterval: schemas.Seconds(1), BackoffCoefficient: 2, MaximumAttempts: 3},
				}),
				schemas.Decide(&schemas.ScheduleTimer{TimerID: "reminder", StartToFireTimeout: schemas.Seconds(86400)}),
				schemas.Decide(&schemas.ResetReplayPoints{}),
			},
		},
		"decision-reply-error": &schemas.DecisionReply{
			V: 1, Token: "t", Error: &schemas.DecisionError{Cause: schemas.CauseDeciderPanic, Reason: "index out of range", Details: "main.go:7"},
		},
		"activity-task": &schemas.ActivityTask{
			V: 1, Namespace: "default", WorkflowID: "order-17", Run: "01HX5S0000000000000000000A", WorkflowType: "order",
			ActivityID: "charge", Type: "charge-card", Input: schemas.Text(`{"$text":"looks like a form"}`), List: "PCI", Attempt: 2,
			ScheduledEventID: 5, ScheduledAt: base, StartToClose: schemas.Seconds(90), CloseBy: base + 3600e9, Heartbeat: schemas.Seconds(0.5),
			NotIdempotent: true, IdempotencyKey: "order-17/01HX5S0000000000000000000A/5", Token: "01HX5S0000000000000000000A/5/2", Fence: 4711,
			Report: "drover.default.in.3.order-17.act.PCI", Beat: "drover.default.beat.3",
		},
		"report-started": &schemas.Report{
			V: 1, Kind: schemas.ReportStarted, Token: "r/5/1", Identity: "worker-1", TaskSequence: 12, Nonce: "n1",
		},
		"report-success": &schemas.Report{
			V: 1, Kind: schemas.ReportSuccess, Token: "r/5/1", Result: schemas.Text(`{"ok":true}`), Elapsed: schemas.Duration(1234567),
		},
		"report-failed": &schemas.Report{
			V: 1, Kind: schemas.ReportFailed, Token: "r/5/1", Reason: "card declined", Details: schemas.Payload{0, 1, 2, 0xff},
		},
		"report-canceled": &schemas.Report{V: 1, Kind: schemas.ReportCanceled, Token: "r/5/1", Details: schemas.Text("stopped at item 7")},
		"report-begin": &schemas.Report{
			V: 1, Kind: schemas.ReportBegin, Token: "r/5/1", TaskSequence: 12, Redelivered: true, Nonce: "n2", ReplyTo: "_INBOX.x",
		},
		"outcome-answer": &schemas.OutcomeAnswer{V: 1, Sequence: 4712},
		"outcome-answer-error": &schemas.OutcomeAnswer{
			V: 1, Error: schemas.Errorf(schemas.CodeConflict, "not taken").WithHint("publish it to the task's report subject"),
		},
		"start-request": &schemas.StartRequest{
			V: 1, WorkflowID: "order-17", Run: "01HX5S0000000000000000000A", RequestID: "req-1", Type: "order", Input: schemas.Text(`[1,2,3]`),
			ExecutionStartToCloseTimeout: schemas.Unlimited, TaskPriority: -3, ActivityDefaults: &schemas.ActivityDefaults{List: "PCI"},
			ChildPolicy: schemas.ChildRequestCancel, TagList: []string{"eu", "gold"}, Attributes: map[string]string{"b": "2", "a": "1"},
		},
		"events":    &schemas.HistoryResponse{V: 1, Run: "r", Events: filledEvents(t), Closed: true},
		"decisions": &schemas.DecisionReply{V: 1, Token: "t", Decisions: filledDecisions(t)},
	}
}

// What is in these files was written by some release, and every later one must read it and write the same. A new field
// or type adds to "events" and "decisions"; a changed line anywhere else is a broken promise.
func TestGolden(t *testing.T) {
	for name, v := range golden(t) {
		t.Run(name, func(t *testing.T) {
			jsonBody, err := schemas.MarshalJSON(v)
			if err != nil {
				t.Fatal(err)
			}
			var indented bytes.Buffer
			if err := json.Indent(&indented, jsonBody, "", "  "); err != nil {
				t.Fatal(err)
			}
			indented.WriteByte('\n')
			body, err := schemas.MarshalNamed(v)
			if err != nil {
				t.Fatal(err)
			}
			checkGolden(t, name+".json", indented.Bytes(), v, func(file []byte) []byte { return compact(t, file) })
			checkGolden(t, name+".msgpack.hex", hexLines(body), v, func(file []byte) []byte { return unhex(t, file) })
			if r, ok := v.(*schemas.Record); ok { // stored in a form of its own
				checkStored(t, name, r)
			}
		})
	}
}

// checkStored compares the two forms in which records are stored. Of the packed one only what it says is frozen: another
// release of the compressor may find a shorter one.
func checkStored(t *testing.T, name string, r *schemas.Record) {
	t.Helper()
	body, err := schemas.MarshalCompact(r)
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, name+".compact.hex", hexLines(body), r, func(file []byte) []byte { return unhex(t, file) })
	packed, err := schemas.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if !schemas.IsPacked(packed) {
		return
	}
	path := filepath.Join("testdata", "golden", name+".packed.hex")
	if *update {
		if err := os.WriteFile(path, hexLines(packed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range [][]byte{packed, unhex(t, file)} {
		var got schemas.Record
		if err := schemas.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, &got); diff != "" {
			t.Fatalf("%s (-value +got):\n%s", path, diff)
		}
	}
}

func checkGolden(t *testing.T, file string, encoded []byte, v any, body func(file []byte) []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", file)
	if *update {
		if err := os.WriteFile(path, encoded, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(encoded)); diff != "" {
		t.Fatalf("%s: the encoding changed (-file +now):\n%s", file, diff)
	}
	got := reflect.New(reflect.TypeOf(v).Elem()).Interface()
	if err := schemas.Unmarshal(body(want), got); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if diff := cmp.Diff(v, got); diff != "" {
		t.Fatalf("%s: the file says something else (-value +file):\n%s", file, diff)
	}
}

// Every golden file belongs to a message, so that none is left over unread.
func TestGoldenFilesAreUsed(t *testing.T) {
	files, err := os.ReadDir(filepath.Join("testdata", "golden"))
	if err != nil {
		t.Fatal(err)
	}
	messages := golden(t)
	want := 2 * len(messages)
	for _, f := range files {
		name, form, _ := strings.Cut(f.Name(), ".")
		if messages[name] == nil {
			t.Fatalf("%s belongs to no message", f.Name())
		}
		if form == "compact.hex" || form == "packed.hex" {
			want++
		}
	}
	if got := len(files); got != want {
		t.Fatalf("got %d files, want %d", got, want)
	}
}

// compact undoes the indentation, which would be a part of the payloads.
func compact(t *testing.T, file []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, file); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func hexLines(b []byte) []byte {
	var out []byte
	for len(b) > 0 {
		n := min(32, len(b))
		out = append(hex.AppendEncode(out, b[:n]), '\n')
		b = b[n:]
	}
	return out
}

func unhex(t testing.TB, lines []byte) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(lines)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
