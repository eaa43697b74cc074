package schemas_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

// w1 are the messages of a workflow of sequential activities whose payloads have 100 bytes, as they travel.
func w1() []struct {
	name    string
	message any
	json    bool
} {
	const (
		wid = "01M7YV1Q0QXA5JA4D1BEBN0ZET"
		run = "01M7YV1Q0QXA5JA4D1BJ8G079T"
	)
	digits := strings.Repeat("0123456789", 10)
	input := schemas.Text(`"` + digits + `"`)
	context := schemas.Text(`{"kind":"seq","n":3,"payload":"` + digits + `","scheduled":3,"closed":2}`)
	at := base
	events := []schemas.Event{
		{ID: 12, Time: at, Attributes: &schemas.ActivityStarted{ScheduledEventID: 11, Attempt: 1, Identity: "vm:3980", TaskSequence: 308, Nonce: "ZERN36JS23T5-8a"}},
		{ID: 13, Time: at + 17000, Attributes: &schemas.ActivitySuccess{ScheduledEventID: 11, StartedEventID: 12, Result: input}},
		{ID: 14, Time: at + 17000, Attributes: &schemas.DeciderScheduled{StartToCloseTimeout: schemas.Seconds(10), Attempt: 1}},
		{ID: 15, Time: at + 900000, Attributes: &schemas.DeciderStarted{ScheduledEventID: 14, Identity: "vm:3980"}},
		{ID: 16, Time: at + 1200000, Attributes: &schemas.DeciderCompleted{
			ScheduledEventID: 14, StartedEventID: 15, ExecutionContext: context, Identity: "vm:3980", ReplyDigest: "6a35544ce4647691",
		}},
		{ID: 17, Time: at + 1200000, Attributes: &schemas.ActivityScheduled{
			ActivityID: "3", ActivityType: "noop", Input: input, List: "bench", StartToCloseTimeout: schemas.Seconds(600), DeciderCompletedEventID: 16,
		}},
	}
	record := &schemas.Record{
		WorkflowID: wid, Run: run, First: 12, Events: events, Inbox: schemas.Position{Sequence: 95, Time: at - 3000}, Fence: 1,
		Previous: bytes.Repeat([]byte{0x8b, 0x15, 0x91, 0xff}, 8),
	}
	task := &schemas.DecisionTask{
		V: 1, Namespace: "default", WorkflowID: wid, Run: run, Type: "bench", PreviousStartedID: 9, StartedID: 15, Token: run + ".15.1.4f",
		Events: events[:4], Context: context, Attempt: 1, Deadline: at + 10e9, Base: &schemas.DecisionBase{CompletedID: 10, Digest: "e48325769ef56218"},
	}
	reply := &schemas.DecisionReply{
		Token: run + ".15.1.4f", Context: context, Identity: "vm:3980", Sticky: "vm-3980-1",
		Decisions: []schemas.Decision{schemas.Decide(&schemas.ScheduleActivity{ActivityID: "3", ActivityType: "noop", List: "bench", Input: input})},
	}
	return []struct {
		name    string
		message any
		json    bool
	}{
		{"start", &schemas.StartRequest{V: 1, WorkflowID: wid, RequestID: run, Type: "bench", Input: context, Identity: "load"}, false},
		{"record", record, false},
		{"decision-task", task, false},
		{"decision-task-first", task, true},
		{"decision-reply", reply, false},
		{"decision-reply-first", reply, true},
		{"activity-task", &schemas.ActivityTask{
			V: 1, Namespace: "default", WorkflowID: wid, Run: run, WorkflowType: "bench", ActivityID: "3", Type: "noop", Input: input, List: "bench",
			Attempt: 1, ScheduledEventID: 17, ScheduledAt: at, StartToClose: schemas.Seconds(600), IdempotencyKey: wid + "/" + run + "/17",
			Token: run + "/17/1", Fence: 1, Report: "drover.default.in.3." + wid + ".act.bench", Beat: "drover.default.beat.3." + wid + ".bench",
		}, true},
		{"report", &schemas.Report{
			V: 1, Kind: schemas.ReportSuccess, Token: run + "/17/1", Identity: "vm:3980", Result: input, Elapsed: 17000, TaskSequence: 308, Nonce: "ZERN36JS23T5-8a",
		}, false},
	}
}

func marshalW1(tb testing.TB, message any, json bool) []byte {
	tb.Helper()
	marshal := schemas.Marshal
	if json {
		marshal = schemas.MarshalJSON
	}
	b, err := marshal(message)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func BenchmarkW1Marshal(b *testing.B) {
	for _, m := range w1() {
		b.Run(m.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				marshalW1(b, m.message, m.json)
			}
			b.ReportMetric(float64(len(marshalW1(b, m.message, m.json))), "bytes")
		})
	}
}

func BenchmarkW1Unmarshal(b *testing.B) {
	for _, m := range w1() {
		b.Run(m.name, func(b *testing.B) {
			body := marshalW1(b, m.message, m.json)
			t := reflect.TypeOf(m.message).Elem()
			b.ReportAllocs()
			for b.Loop() {
				if err := schemas.Unmarshal(body, reflect.New(t).Interface()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What a workflow sends is read by the plans, and not a second time.
func TestW1IsQuick(t *testing.T) {
	for _, m := range w1() {
		got := reflect.New(reflect.TypeOf(m.message).Elem()).Interface()
		var quick bool
		if m.json {
			quick = schemas.QuickJSON(marshalW1(t, m.message, true), got)
		} else if b, err := schemas.MarshalNamed(m.message); err == nil {
			quick = schemas.Quick(b, got)
		}
		if !quick || !cmp.Equal(m.message, got) {
			t.Errorf("%s: quick %v: %s", m.name, quick, cmp.Diff(m.message, got))
		}
	}
}
