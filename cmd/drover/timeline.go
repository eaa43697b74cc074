package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/droverhq/drover/schemas"
)

// timeline prints events as lines for people: id, time since the start, type, and the attributes as name=value.
//
// The attributes are found by reflection, so that an event type of tomorrow has its line without a change here. What a
// reader does not need is named in quiet; payloads show their size only.
type timeline struct {
	start schemas.Timestamp
	// names holds what the event ids of open things stand for: later events refer to them by id alone.
	names map[int64]string
}

// quiet are attributes that say nothing to a reader of the timeline.
var quiet = map[string]bool{
	"deciderCompletedEventId": true, "startedEventId": true, "control": true, "nonce": true, "taskSequence": true,
	"replyDigest": true, "requestId": true, "identity": true, "workflowId": true, "run": true,
}

// shorter are the names that a line uses for long ones.
var shorter = map[string]string{
	"activityId": "activity", "activityType": "type", "activityTypeVersion": "version", "timerId": "timer",
	"workflowType": "type", "workflowTypeVersion": "version", "signalName": "signal", "markerName": "marker",
	"executionStartToCloseTimeout": "timeout", "taskStartToCloseTimeout": "decisionTimeout",
	"taskScheduleToStartTimeout": "decisionWait", "startToFireTimeout": "in", "timeoutType": "timeout",
	"executionContext": "context", "taskPriority": "priority", "tagList": "tags", "newExecutionRun": "newRun",
	"continuedExecutionRun": "continues", "parentWorkflowExecution": "parent", "externalWorkflowExecution": "from",
	"workflowExecution": "child", "latestCancelRequestedEventId": "cancelRequestedBy",
}

// who shows the identity of workers where it matters.
var who = map[schemas.EventType]bool{
	schemas.EventActivityStarted: true, schemas.EventActivityInterrupted: true, schemas.EventDeciderCompleted: true,
	schemas.EventWorkflowTerminated: true, schemas.EventWorkflowPaused: true, schemas.EventWorkflowResumed: true,
	schemas.EventWorkflowCancelRequested: true,
}

// widestType is the length of the longest event type, ActivityScheduledTimeout.
const widestType = 24

// indent is where the type of an event stands in its line.
const indent = 5 + 2 + 11 + 1

func (t *timeline) print(e schemas.Event) string {
	if t.names == nil {
		t.names, t.start = map[int64]string{}, e.Time
	}
	line := fmt.Sprintf("%5d  %11s  %-*s  %s", e.ID, "+"+span(e.Time.Sub(t.start)), widestType, word(string(e.Type()), 40), t.attributes(e))
	return strings.TrimRight(line, " ")
}

func (t *timeline) attributes(e schemas.Event) string {
	if u, ok := e.Attributes.(*schemas.Unknown); ok {
		b, err := u.MarshalJSON()
		if err != nil {
			return ""
		}
		return excerpt(b)
	}
	v := reflect.Indirect(reflect.ValueOf(e.Attributes))
	if v.Kind() != reflect.Struct {
		return ""
	}
	var parts []string
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == "identity" && who[e.Type()] && !v.Field(i).IsZero() {
			parts = append(parts, "by="+word(v.Field(i).String(), 60))
			continue
		}
		if quiet[name] || v.Field(i).IsZero() {
			continue
		}
		if name == "scheduledEventId" {
			if named := t.names[v.Field(i).Int()]; named != "" {
				parts = append(parts, named)
			}
			continue
		}
		if short, ok := shorter[name]; ok {
			name = short
		}
		parts = append(parts, name+"="+show(v.Field(i)))
	}
	t.remember(e)
	return strings.Join(parts, " ")
}

// remember keeps what later events refer to by the id of this one. Closing events take nothing away: a run has at most
// some thousand of these.
func (t *timeline) remember(e schemas.Event) {
	switch a := e.Attributes.(type) {
	case *schemas.ActivityScheduled:
		t.names[e.ID] = "activity=" + word(a.ActivityID, 60)
	case *schemas.ChildScheduled:
		t.names[e.ID] = "id=" + word(a.WorkflowID, 60)
	case *schemas.SignalExternalScheduled:
		t.names[e.ID] = "signal=" + word(a.SignalName, 60)
	case *schemas.StateRequested:
		t.names[e.ID] = "decision=" + string(a.Decision)
	}
}

// show prints one attribute.
func show(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case schemas.Payload:
		if ref, ok := x.Ref(); ok {
			return size(int(ref.Size))
		}
		return size(len(x))
	case schemas.Duration:
		return x.String()
	case schemas.Timestamp:
		return when(x)
	case schemas.Execution:
		return word(x.WorkflowID, 60)
	case *schemas.Execution:
		return word(x.WorkflowID, 60)
	case *schemas.ReplayOf:
		return replayOf(x)
	case []string:
		return words(x)
	case map[string]string:
		pairs := make([]string, 0, len(x))
		for _, k := range sortedKeys(x) {
			pairs = append(pairs, k+":"+x[k])
		}
		return words(pairs)
	}
	switch v.Kind() {
	case reflect.String:
		return word(v.String(), 80)
	case reflect.Int, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10)
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	default:
		p, err := schemas.JSONPayload(v.Interface())
		if err != nil {
			return "?"
		}
		return excerpt(p)
	}
}

// replayOf shows what a run repeats.
func replayOf(r *schemas.ReplayOf) string {
	s := word(r.Run, 64) + " from=" + word(r.From, 60)
	if r.Force {
		s += " force=true"
	}
	if r.Identity != "" {
		s += " by=" + word(r.Identity, 60)
	}
	if r.Reason != "" {
		s += " reason=" + word(r.Reason, 200)
	}
	return s
}

// excerpt shows the beginning of a payload: JSON and text as they are, other bytes by their size.
func excerpt(p []byte) string {
	const most = 200
	if ref, ok := schemas.Payload(p).Ref(); ok {
		return size(int(ref.Size)) + " in object " + ref.Object
	}
	if !utf8.Valid(p) {
		return size(len(p)) + " that are not text"
	}
	s := string(p)
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "… (" + size(len(p)) + ")"
	}
	return sentence(s)
}

func words(list []string) string {
	safe := make([]string, len(list))
	for i, s := range list {
		safe[i] = word(s, 60)
	}
	return strings.Join(safe, ",")
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
