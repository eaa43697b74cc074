package docs_test

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/jsonschema"
)

// jsonType says what a Go type is in JSON.
func jsonType(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[schemas.Payload]():
		return "payload"
	case t == reflect.TypeFor[schemas.Duration]():
		return "duration"
	case t == reflect.TypeFor[schemas.Timestamp]():
		return "time"
	case t.Kind() == reflect.Pointer:
		return jsonType(t.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "bytes (base64)"
	case t.Kind() == reflect.Slice:
		return "array of " + jsonType(t.Elem())
	case t.Kind() == reflect.Map:
		return "object of " + jsonType(t.Elem())
	case t == reflect.TypeFor[schemas.Event](), t == reflect.TypeFor[schemas.EventType]():
		return "[" + t.Name() + "](#events)"
	case t == reflect.TypeFor[schemas.Decision](), t == reflect.TypeFor[schemas.DecisionType]():
		return "[" + t.Name() + "](#decisions)"
	case t.PkgPath() != "":
		return "[" + t.Name() + "](#" + strings.ToLower(t.Name()) + ")"
	case t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Float64:
		return "number"
	default:
		return "integer"
	}
}

// fields is the table of a struct.
func fields(t *testing.T, typ reflect.Type) string {
	all := jsonschema.Fields(source(t, "schemas"), typ)
	if len(all) == 0 {
		return "It has no fields.\n"
	}
	var body [][]string
	for _, f := range all {
		need := "always"
		if f.Optional {
			need = ""
		}
		body = append(body, []string{"`" + f.Name + "`", jsonType(f.Go), need, text(f.Doc)})
	}
	return table([]string{"field", "JSON", "written", "meaning"}, body)
}

func structure(t *testing.T, level string, typ reflect.Type) string {
	return fmt.Sprintf("%s %s\n\n%s\n\n%s\n", level, typ.Name(), text(jsonschema.Doc(source(t, "schemas"), typ)), fields(t, typ))
}

// topics are the headings of the messages, by the files of package schemas that hold them.
var topics = []struct{ file, heading string }{
	{"api.go", "Requests and answers of the API"},
	{"count.go", "Counts, task lists and dead letters"},
	{"replay.go", "Replays"},
	{"audit.go", "Audits"},
	{"task.go", "Tasks, reports and alarms"},
	{"exchange.go", "Between workflows, and to running workers"},
	{"payloadref.go", "Large payloads"},
	{"types.go", "Registered types"},
	{"lock.go", "Locks"},
	{"state.go", "State keys"},
	{"schedule.go", "Schedules"},
	{"scheduletimes.go", "Times of schedules"},
	{"schedulewindow.go", "Fire-once windows"},
	{"once.go", "Once a period"},
	{"alwayson.go", "Always-on workflows"},
	{"recycle.go", "Recycles"},
	{"operation.go", "Operations"},
	{"namespace.go", "Namespaces"},
	{"record.go", "In streams and buckets"},
	{"node.go", "Nodes"},
	{"error.go", "Errors"},
}

func messages(t *testing.T) string {
	p := source(t, "schemas")
	files := map[string][]reflect.Type{}
	for _, m := range jsonschema.Messages() {
		file := p.Type(m.Name()).File
		files[file] = append(files[file], m)
	}
	var b strings.Builder
	for _, topic := range topics {
		fmt.Fprintf(&b, "### %s\n\n", topic.heading)
		// In the order of the source, where a request stands before its answer.
		for _, typ := range p.Types {
			for _, m := range files[topic.file] {
				if m.Name() == typ.Name {
					b.WriteString(structure(t, "####", m))
				}
			}
		}
		delete(files, topic.file)
	}
	for file, left := range files {
		t.Errorf("%v of schemas/%s have no heading: add the file to topics", left, file)
	}
	return b.String()
}

// parts are the structs that messages are made of, and that are neither messages nor attributes.
func parts(t *testing.T) string {
	known := map[reflect.Type]bool{reflect.TypeFor[schemas.Event](): true, reflect.TypeFor[schemas.Decision](): true}
	for _, m := range jsonschema.Messages() {
		known[m] = true
	}
	var found []reflect.Type
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		if !known[typ] {
			known[typ] = true
			found = append(found, typ)
		} else if !slices.Contains(jsonschema.Messages(), typ) {
			return
		}
		for f := range typ.Fields() {
			visit(f.Type)
		}
	}
	for _, typ := range attributes(t) {
		known[typ] = true
	}
	for _, m := range jsonschema.Messages() {
		visit(m)
	}
	for _, typ := range attributes(t) {
		for f := range typ.Fields() {
			visit(f.Type)
		}
	}
	slices.SortFunc(found, func(a, b reflect.Type) int { return strings.Compare(a.Name(), b.Name()) })
	var b strings.Builder
	for _, typ := range found {
		b.WriteString(structure(t, "###", typ))
	}
	return b.String()
}

// elsewhere are the types of constants that have tables of their own.
var elsewhere = []string{"EventType", "DecisionType", "Cause", "Code"}

func enumerations(t *testing.T) string {
	p := source(t, "schemas")
	var b strings.Builder
	for _, typ := range p.Types {
		all := jsonschema.Values(p, typ.Name)
		if len(all) == 0 || slices.Contains(elsewhere, typ.Name) {
			continue
		}
		var body [][]string
		for _, v := range all {
			body = append(body, []string{"`" + v.Name + "`", text(v.Doc)})
		}
		fmt.Fprintf(&b, "### %s\n\n%s\n\n%s\n", typ.Name, text(typ.Doc), table([]string{"value", "meaning"}, body))
	}
	for _, name := range []string{"Cause", "Code"} {
		typ := p.Type(name)
		var values []string
		for _, c := range p.ConstantsOf(name) {
			values = append(values, fmt.Sprintf("[`%s`](errors.md#%s)", c.Value, strings.ToLower(c.Value)))
		}
		fmt.Fprintf(&b, "### %s\n\n%s What each means and what to do: [errors.md](errors.md).\n\n%s.\n\n", name, text(typ.Doc), strings.Join(values, ", "))
	}
	return b.String()
}

// Every heading that a page links to is there.
func TestLinks(t *testing.T) {
	anchors := map[string]map[string]bool{}
	for _, file := range []string{formats, faults} {
		anchors[file] = map[string]bool{}
		for line := range strings.Lines(read(t, file)) {
			if name := strings.TrimLeft(line, "#"); name != line {
				name = strings.ToLower(strings.ReplaceAll(strings.TrimSpace(name), "`", ""))
				anchors[file][strings.ReplaceAll(name, " ", "-")] = true
			}
		}
	}
	for _, file := range []string{formats, faults} {
		for _, part := range strings.Split(read(t, file), "](")[1:] {
			target, _, _ := strings.Cut(part, ")")
			page, anchor, ok := strings.Cut(target, "#")
			page = cmp.Or(page, file)
			if _, err := os.Stat(page); err != nil {
				t.Errorf("%s links to %s: %v", file, target, err)
			}
			if known := anchors[page]; ok && known != nil && !known[anchor] {
				t.Errorf("%s links to %s, and nothing there has that heading", file, target)
			}
		}
	}
}
