package drovertest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

// History is the events of one run, in order.
type History []schemas.Event

// History reads the history of the workflow's open run, or else of its latest. It fails the test
// when there is none.
func (e *Env) History(id string) History {
	e.t.Helper()
	var h History
	ctx := context.WithoutCancel(e.t.Context())
	for event, err := range e.Client.Run(id, "").History(ctx, drover.HistoryOptions{}) {
		if err != nil {
			e.t.Fatalf("drovertest: %v", err)
		}
		h = append(h, event)
	}
	return h
}

// String writes the events one a line, without times and generated ids, so that two histories of
// the same course are the same text: the id, the type, the name of the activity, timer, child,
// signal, marker, lock or state key that it is about, the attempt if it is not the first, and the
// cause or reason.
//
//	5 ActivityScheduled charge
//	6 ActivityStarted charge
//	7 ActivityRetryScheduled charge card-declined
//	8 ActivityStarted charge attempt 2
func (h History) String() string { return h.lines(func(schemas.Event) string { return "" }) }

// timeline is String with the time since the start.
func (h History) timeline() string {
	return h.lines(func(e schemas.Event) string {
		return fmt.Sprintf(" +%v", e.Time.Sub(h[0].Time))
	})
}

func (h History) lines(note func(schemas.Event) string) string {
	names := names{}
	var b strings.Builder
	for i, e := range h {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%d%s %s", e.ID, note(e), e.Type())
		for _, word := range names.words(e) {
			b.WriteString(" " + word)
		}
	}
	return b.String()
}

// The fields of attributes that make words. They are found by reflection, so that an event type of
// tomorrow has its line without a change here.
var (
	nameFields = []string{
		"ActivityID", "TimerID", "SignalName", "MarkerName", "Lock", "Key", "Name",
	}
	causeFields = []string{"TimeoutType", "Cause", "Reason"}
)

// names holds what the ids of scheduling events stand for: later events refer to them by id alone.
type names map[int64]string

func (n names) words(e schemas.Event) (words []string) {
	v := reflect.Indirect(reflect.ValueOf(e.Attributes))
	if _, unknown := e.Attributes.(*schemas.Unknown); unknown || v.Kind() != reflect.Struct {
		return nil
	}
	name := nameOf(e.Type(), v)
	if scheduled := v.FieldByName("ScheduledEventID"); name == "" && scheduled.IsValid() {
		name = n[scheduled.Int()]
	}
	if name != "" {
		n[e.ID] = name
		words = append(words, name)
	}
	if attempt := v.FieldByName("Attempt"); attempt.IsValid() && attempt.Int() > 1 &&
		e.Type() == schemas.EventActivityStarted {
		words = append(words, "attempt", strconv.FormatInt(attempt.Int(), 10))
	}
	for _, field := range causeFields {
		// A reason may be a whole stack.
		if cause := text(v, field); cause != "" && !strings.Contains(cause, "\n") {
			return append(words, cause)
		}
	}
	return words
}

// nameOf is what the event is about, if it says so itself. What is sent to another workflow begins
// with its id.
func nameOf(typ schemas.EventType, v reflect.Value) string {
	var of []string
	if typ != schemas.EventWorkflowStarted {
		of = append(of, text(v, "WorkflowID"))
	}
	if child := v.FieldByName("WorkflowExecution"); child.IsValid() {
		of = append(of, text(child, "WorkflowID"))
	}
	for _, field := range nameFields {
		of = append(of, text(v, field))
	}
	return strings.Join(slices.DeleteFunc(of, func(s string) bool { return s == "" }), " ")
}

// text is a field's value, empty without such a field.
func text(v reflect.Value, field string) string {
	if f := v.FieldByName(field); f.IsValid() && f.Kind() == reflect.String {
		return f.String()
	}
	return ""
}
