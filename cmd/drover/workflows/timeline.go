package workflows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

// Timeline prints events as lines for people: id, time since the start, type, and the attributes as
// name=value.
//
// The attributes are found by reflection, so that an event type of tomorrow has its line without a
// change here. What a reader does not need is named in quiet.
type Timeline struct {
	full    bool // values are whole, and text of several lines is lines
	compact bool // a decision is one line
	width   int  // of the terminal; 0 for none
	part    bool // events may be missing

	start schemas.Timestamp
	// names holds what the event ids of open things stand for: later events refer to them by id
	// alone.
	names map[int64]string
	// asked is the decision that is not made yet, in a compact timeline: the event that wants it.
	asked *schemas.Event
	begun bool // a decider has it
}

// part is one attribute in a line.
type part struct {
	name, value string   // name=value, or the value alone
	cuttable    bool     // the value may be cut
	lines       []string // of a text of several lines, of which value has the first
}

const (
	// usualValue is how many characters a value has where no terminal is.
	usualValue = 80
	// leastValue is how many of a value stay on a narrow terminal.
	leastValue = 12
)

// quiet are attributes that say nothing to a reader of the timeline.
var quiet = map[string]bool{
	"deciderCompletedEventId": true, "startedEventId": true, "control": true, "nonce": true,
	"taskSequence": true, "replyDigest": true, "requestId": true, "identity": true,
	"workflowId": true, "run": true,
}

// shorter are the names that a line uses for long ones.
var shorter = map[string]string{
	"activityId": "activity", "activityType": "type", "activityTypeVersion": "version",
	"timerId": "timer", "workflowType": "type", "workflowTypeVersion": "version",
	"signalName": "signal", "markerName": "marker", "executionStartToCloseTimeout": "timeout",
	"taskStartToCloseTimeout": "decisionTimeout", "taskScheduleToStartTimeout": "decisionWait",
	"startToFireTimeout": "in", "timeoutType": "timeout", "executionContext": "context",
	"taskPriority": "priority", "tagList": "tags", "newExecutionRun": "newRun",
	"continuedExecutionRun": "continues", "parentWorkflowExecution": "parent",
	"externalWorkflowExecution": "from", "workflowExecution": "child",
	"latestCancelRequestedEventId": "cancelRequestedBy",
}

// who shows the identity of workers where it matters.
var who = map[schemas.EventType]bool{
	schemas.EventActivityStarted: true, schemas.EventActivityInterrupted: true,
	schemas.EventDeciderCompleted: true, schemas.EventWorkflowTerminated: true,
	schemas.EventWorkflowPaused: true, schemas.EventWorkflowResumed: true,
	schemas.EventWorkflowCancelRequested: true, schemas.EventContinuationHeld: true,
	schemas.EventContinuationReleased: true,
}

// WidestType is the length of the longest event type, ActivityScheduledTimeout.
const WidestType = 24

// Indent is where the type of an event stands in its line.
const Indent = 5 + 2 + 11 + 1

// Print lays an event out, and whatever it makes complete: one line or several, or none of what is
// folded into a later one.
func (t *Timeline) Print(e schemas.Event) string {
	if t.names == nil {
		t.begin(e.Time)
	}
	if !t.compact {
		return t.line(e, string(e.Type()), t.attributes(e))
	}
	switch e.Type() {
	case schemas.EventDeciderScheduled:
		t.asked, t.begun = &e, false
		return ""
	case schemas.EventDeciderStarted:
		t.begun = true
		return ""
	case schemas.EventDeciderCompleted, schemas.EventDeciderFailed, schemas.EventDeciderTimedOut:
		var parts []part
		switch e.Type() {
		case schemas.EventDeciderFailed:
			parts = append(parts, part{value: "failed"})
		case schemas.EventDeciderTimedOut:
			parts = append(parts, part{value: "timed out"})
		}
		if t.asked != nil {
			parts = append(parts, part{name: "took", value: cli.Span(e.Time.Sub(t.asked.Time))})
			t.asked = nil
		}
		return t.line(e, "Decision", append(parts, t.attributes(e)...))
	}
	return t.line(e, string(e.Type()), t.attributes(e))
}

// begin says when the run began.
func (t *Timeline) begin(at schemas.Timestamp) { t.names, t.start = map[int64]string{}, at }

// end is what is left to say after the last event.
func (t *Timeline) end() string {
	if t.asked == nil {
		return ""
	}
	state := "wanted"
	if t.begun {
		state = "asked for"
	}
	return t.line(*t.asked, "Decision", []part{{value: state + ", not made yet"}})
}

func (t *Timeline) line(e schemas.Event, typ string, parts []part) string {
	head := fmt.Sprintf("%5d  %11s  %-*s  ", e.ID, "+"+cli.Span(e.Time.Sub(t.start)), WidestType,
		cli.Word(typ, 40))
	t.fit(parts, t.width-utf8.RuneCountInString(head))
	words := make([]string, len(parts))
	for i, p := range parts {
		words[i] = p.String()
	}
	line := strings.TrimRight(head+strings.Join(words, " "), " ")
	if !t.full && t.width > 0 {
		line = cli.Cut(line, t.width)
	}
	line += "\n"
	if t.full {
		for _, p := range parts {
			for _, l := range p.lines {
				line += strings.Repeat(" ", Indent) + l + "\n"
			}
		}
	}
	return line
}

func (p part) String() string {
	if p.name == "" {
		return p.value
	}
	return p.name + "=" + p.value
}

// fit cuts values so that the parts have so many columns, the longest first.
func (t *Timeline) fit(parts []part, room int) {
	switch {
	case t.full:
		return
	case t.width == 0:
		for i := range parts {
			if parts[i].cuttable {
				parts[i].value = cli.Cut(parts[i].value, usualValue)
			}
		}
		return
	}
	for {
		sum, longest, most := -1, -1, leastValue
		for i := range parts {
			sum += utf8.RuneCountInString(parts[i].String()) + 1
			if n := utf8.RuneCountInString(parts[i].value); parts[i].cuttable && n > most {
				longest, most = i, n
			}
		}
		if sum <= room || longest < 0 {
			return
		}
		parts[longest].value = cli.Cut(parts[longest].value,
			max(leastValue, most-max(1, (sum-room)/2)))
	}
}

func (t *Timeline) attributes(e schemas.Event) []part {
	if u, ok := e.Attributes.(*schemas.Unknown); ok {
		b, err := u.MarshalJSON()
		if err != nil {
			return nil
		}
		return []part{valuePart("", b)}
	}
	v := reflect.Indirect(reflect.ValueOf(e.Attributes))
	if v.Kind() != reflect.Struct {
		return nil
	}
	var parts []part
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == "identity" && who[e.Type()] && !v.Field(i).IsZero() {
			parts = append(parts, part{name: "by", value: cli.Word(v.Field(i).String(), 60)})
			continue
		}
		if quiet[name] || v.Field(i).IsZero() {
			continue
		}
		if name == "scheduledEventId" {
			id := v.Field(i).Int()
			switch named := t.names[id]; {
			case named != "":
				parts = append(parts, part{value: named})
			case t.part && !strings.HasPrefix(string(e.Type()), "Decider"):
				parts = append(parts, part{name: "of", value: strconv.FormatInt(id, 10)})
			}
			continue
		}
		if short, ok := shorter[name]; ok {
			name = short
		}
		parts = append(parts, show(name, v.Field(i)))
	}
	t.remember(e)
	return parts
}

// remember keeps what later events refer to by the id of this one. Closing events take nothing
// away: a run has at most some thousand of these.
func (t *Timeline) remember(e schemas.Event) {
	switch a := e.Attributes.(type) {
	case *schemas.ActivityScheduled:
		t.names[e.ID] = "activity=" + cli.Word(a.ActivityID, 60)
	case *schemas.ChildScheduled:
		t.names[e.ID] = "id=" + cli.Word(a.WorkflowID, 60)
	case *schemas.SignalExternalScheduled:
		t.names[e.ID] = "signal=" + cli.Word(a.SignalName, 60)
	case *schemas.StateRequested:
		t.names[e.ID] = "decision=" + string(a.Decision)
	}
}

// show lays out one attribute.
func show(name string, v reflect.Value) part {
	p := part{name: name}
	switch x := v.Interface().(type) {
	case schemas.Payload:
		return valuePart(name, x)
	case schemas.Duration:
		p.value = x.String()
	case schemas.Timestamp:
		p.value = cli.When(x)
	case schemas.Execution:
		p.value = cli.Word(x.WorkflowID, 60)
	case *schemas.Execution:
		p.value = cli.Word(x.WorkflowID, 60)
	case *schemas.ReplayOf:
		p.value = replayOf(x)
	case []string:
		p.value = words(x)
	case map[string]string:
		pairs := make([]string, 0, len(x))
		for _, k := range sortedKeys(x) {
			pairs = append(pairs, k+":"+x[k])
		}
		p.value = words(pairs)
	default:
		switch v.Kind() {
		case reflect.String:
			p.value, p.lines = textLines(v.String(), func(s string) string { return cli.Word(s, cli.Whole) })
			p.cuttable = true
		case reflect.Int, reflect.Int64:
			p.value = strconv.FormatInt(v.Int(), 10)
		case reflect.Uint64:
			p.value = strconv.FormatUint(v.Uint(), 10)
		case reflect.Bool:
			p.value = strconv.FormatBool(v.Bool())
		default:
			b, err := schemas.JSONPayload(v.Interface())
			if err != nil {
				p.value = "?"
				break
			}
			return valuePart(name, b)
		}
	}
	return p
}

// valuePart lays out a payload: JSON and text as they are, other bytes by their size.
func valuePart(name string, p []byte) part {
	if ref, ok := schemas.Payload(p).Ref(); ok {
		return part{name: name, value: cli.Size(int(ref.Size)) + " in object " + ref.Object}
	}
	if !utf8.Valid(p) || bytes.IndexByte(p, 0) >= 0 {
		return part{name: name, value: cli.Size(len(p)) + " that are not text"}
	}
	var compact bytes.Buffer
	if json.Compact(&compact, p) == nil {
		p = compact.Bytes()
	}
	value, lines := textLines(string(p), cli.Sentence)
	return part{name: name, value: value, lines: lines, cuttable: true}
}

// textLines tells text of several lines, bare or as JSON, by its first line, and gives them all.
// Other text is shown by one.
func textLines(s string, one func(string) string) (value string, lines []string) {
	text := strings.TrimSpace(s)
	if strings.HasPrefix(text, `"`) {
		var bare string
		if json.Unmarshal([]byte(text), &bare) == nil {
			text = strings.TrimSpace(bare)
		}
	}
	if !strings.Contains(text, "\n") || json.Valid([]byte(text)) {
		return one(s), nil
	}
	for line := range strings.Lines(text) {
		lines = append(lines,
			cli.Sentence(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")))
	}
	return strconv.Quote(strings.TrimSpace(lines[0])) + "…", lines
}

// replayOf shows what a run repeats.
func replayOf(r *schemas.ReplayOf) string {
	s := cli.Word(r.Run, 64) + " from=" + cli.Word(r.From, 60)
	if r.Force {
		s += " force=true"
	}
	if r.Identity != "" {
		s += " by=" + cli.Word(r.Identity, 60)
	}
	if r.Reason != "" {
		s += " reason=" + cli.Word(r.Reason, 200)
	}
	return s
}

// Excerpt shows the beginning of a payload: JSON and text as they are, other bytes by their size.
func Excerpt(p []byte) string {
	const most = 200
	if ref, ok := schemas.Payload(p).Ref(); ok {
		return cli.Size(int(ref.Size)) + " in object " + ref.Object
	}
	if !utf8.Valid(p) {
		return cli.Size(len(p)) + " that are not text"
	}
	s := string(p)
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "… (" + cli.Size(len(p)) + ")"
	}
	return cli.Sentence(s)
}

func words(list []string) string {
	safe := make([]string, len(list))
	for i, s := range list {
		safe[i] = cli.Word(s, 60)
	}
	return strings.Join(safe, ",")
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
