package checker_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// A history in the short notation has one event a line:
//
//	[id] [+duration] Type [name] [key=value …]   # a comment
//
// The id is checked if it is there. +duration lets time pass before the event. The name is that of the activity, timer,
// child, lock, key, signal or marker. Attributes that follow from the events before (the ids of the scheduled, started and
// completed events, the attempt) are filled in; key=value sets any attribute by hand, with a JSON value or a bare text.
//
// A line "---" ends a record, where a test is about records.

// scribe writes events and remembers what later ones refer to.
type scribe struct {
	events []schemas.Event
	cuts   []int // indexes of events at which a new record begins
	now    time.Time

	pending, started, startedOf, completed int64
	scheduled, begun, canceled, decided    map[string]int64 // by prefix and name
	attempt                                map[string]int
}

func newScribe() *scribe {
	return &scribe{
		now:       time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC),
		scheduled: make(map[string]int64), begun: make(map[string]int64), canceled: make(map[string]int64), decided: make(map[string]int64),
		attempt: make(map[string]int),
	}
}

// script reads a history in the short notation.
func script(t testing.TB, text string) []schemas.Event {
	t.Helper()
	s := newScribe()
	for line := range strings.Lines(text) {
		if err := s.add(line); err != nil {
			t.Fatalf("%s: %v", strings.TrimSpace(line), err)
		}
	}
	return s.events
}

// add reads one line.
func (s *scribe) add(line string) error {
	line, _, _ = strings.Cut(line, "#")
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	if words[0] == "---" {
		s.cuts = append(s.cuts, len(s.events))
		return nil
	}
	id := int64(len(s.events) + 1)
	if n, err := strconv.ParseInt(words[0], 10, 64); err == nil {
		if n != id {
			return fmt.Errorf("the line says %d, the event is %d", n, id)
		}
		words = words[1:]
	}
	if after, ok := strings.CutPrefix(words[0], "+"); ok {
		d, err := time.ParseDuration(after)
		if err != nil {
			return err
		}
		s.now, words = s.now.Add(d), words[1:]
	}
	if len(words) == 0 {
		return nil
	}
	name := ""
	if len(words) > 1 && !strings.Contains(words[1], "=") {
		name = words[1]
		words = slices.Delete(words, 1, 2)
	}
	attributes := s.infer(words[0], name)
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		if json.Valid([]byte(value)) {
			attributes[key] = json.RawMessage(value)
		} else {
			attributes[key] = value
		}
	}
	b, err := json.Marshal(map[string]any{"id": id, "type": words[0], "time": s.now, "attributes": attributes})
	if err != nil {
		return err
	}
	var e schemas.Event
	if err := json.Unmarshal(b, &e); err != nil {
		return err
	}
	s.events = append(s.events, e)
	s.remember(e, words[0], name)
	return nil
}

// prefixes are the families of events with a name of their own, and the attribute that it is.
var prefixes = []struct{ prefix, attribute string }{
	{"Activity", "activityId"},
	{"Timer", "timerId"},
	{"Child", "workflowId"},
	{"SignalExternal", "workflowId"},
	{"ExternalSignaled", "workflowId"},
	{"CancelExternal", "workflowId"},
	{"ExternalCancel", "workflowId"},
	{"Lock", "lock"},
	{"State", "key"},
	{"Signal", "signalName"},
	{"Marker", "markerName"},
	{"Replay", "name"},
}

func family(typ string) (prefix, attribute string) {
	for _, p := range prefixes {
		if strings.HasPrefix(typ, p.prefix) {
			switch p.prefix {
			case "ExternalSignaled":
				return "SignalExternal", p.attribute
			case "ExternalCancel":
				return "CancelExternal", p.attribute
			}
			return p.prefix, p.attribute
		}
	}
	return "", "name"
}

// infer returns the attributes that follow from the events before. What a type does not have is ignored when it is read.
func (s *scribe) infer(typ, name string) map[string]any {
	prefix, attribute := family(typ)
	key := prefix + " " + name
	a := map[string]any{attribute: name, "deciderCompletedEventId": s.completed}
	switch {
	case typ == "WorkflowStarted":
		a["workflowId"], a["run"] = "w", "r"
	case typ == "WorkflowTimedOut":
		a["timeoutType"] = "START_TO_CLOSE"
	case typ == "DeciderStarted":
		a["scheduledEventId"] = s.pending
	case typ == "DeciderTimedOut" && s.started == 0:
		a["timeoutType"], a["scheduledEventId"] = "SCHEDULE_TO_START", s.pending
	case strings.HasPrefix(typ, "Decider"):
		a["timeoutType"], a["scheduledEventId"], a["startedEventId"] = "START_TO_CLOSE", s.startedOf, s.started
	case typ == "ActivityScheduled":
		a["retry"] = map[string]any{} // without limit
	case typ == "ActivityStarted":
		a["scheduledEventId"], a["attempt"] = s.scheduled[key], s.attempt[key]+1
	case typ == "ActivityScheduledTimeout":
		a["timeoutType"] = "SCHEDULE_TO_START"
		a["scheduledEventId"] = s.scheduled[key]
	case prefix != "" && !asks(typ):
		a["timeoutType"], a["scheduledEventId"], a["startedEventId"], a["attempt"] = "START_TO_CLOSE", s.scheduled[key], s.begun[key], s.attempt[key]
		a["latestCancelRequestedEventId"] = s.canceled[key]
		a["workflowExecution"] = map[string]any{"workflowId": name, "run": name + "-run"}
	}
	if typ == "ChildScheduled" {
		a["run"] = name + "-run"
	}
	if typ == "ChildStartFailed" || typ == "SignalExternalFailed" || typ == "CancelExternalFailed" {
		a["deciderCompletedEventId"] = s.decided[key] // of what it answers, not of the decision before it
	}
	return a
}

// asks tells whether an event asks for something that later ones answer.
func asks(typ string) bool {
	return strings.HasSuffix(typ, "Scheduled") && typ != "ActivityRetryScheduled" || typ == "LockRequested" || typ == "StateRequested"
}

func (s *scribe) remember(e schemas.Event, typ, name string) {
	prefix, _ := family(typ)
	key := prefix + " " + name
	switch {
	case typ == "DeciderScheduled":
		s.pending = e.ID
	case typ == "DeciderStarted":
		s.started, s.startedOf, s.pending = e.ID, s.pending, 0
	case typ == "DeciderCompleted":
		s.completed, s.started = e.ID, 0
	case strings.HasPrefix(typ, "Decider"):
		s.started = 0
	case typ == "ActivityStarted":
		s.begun[key], s.attempt[key] = e.ID, s.attempt[key]+1
	case typ == "ActivityInterrupted" || typ == "ActivityRetryScheduled":
		s.begun[key] = 0
	case typ == "ActivityCancelRequested":
		s.canceled[key] = e.ID
	case typ == "ChildStarted":
		s.begun[key] = e.ID
	case asks(typ):
		s.scheduled[key], s.begun[key], s.attempt[key], s.canceled[key] = e.ID, 0, 0, 0
		s.decided[key] = s.completed
	}
}

// show writes events for the output of a failed test.
func show(events []schemas.Event) string {
	var b strings.Builder
	for _, e := range events {
		line, err := json.Marshal(e)
		if err != nil {
			line = []byte(err.Error())
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}
