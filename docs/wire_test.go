package docs_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/jsonschema"
)

// literals calls fn with the texts that stand directly in each composite literal of a package.
func literals(t *testing.T, dir string, fn func(texts []string)) {
	source(t, dir).Each(func(n ast.Node) {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return
		}
		var texts []string
		for _, e := range lit.Elts {
			if named, ok := e.(*ast.KeyValueExpr); ok {
				e = named.Value
			}
			if s, ok := literal(e); ok {
				texts = append(texts, s)
			}
		}
		fn(texts)
	})
}

func literal(e ast.Expr) (string, bool) {
	if sum, ok := e.(*ast.BinaryExpr); ok && sum.Op == token.ADD {
		left, ok1 := literal(sum.X)
		right, ok2 := literal(sum.Y)
		return left + right, ok1 && ok2
	}
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

// verbs is the table of the verbs that packages serve: {"name", "about: Request → Response", …}.
func verbs(t *testing.T, prefix string, dirs ...string) string {
	known := jsonschema.Names()
	link := func(message string) string {
		if !slices.Contains(known, message) {
			t.Errorf("%v: %q is no message", dirs, message)
		}
		return "[" + message + "](#" + strings.ToLower(message) + ")"
	}
	var body [][]string
	for _, dir := range dirs {
		before := len(body)
		literals(t, dir, func(texts []string) {
			if len(texts) < 2 || !strings.Contains(texts[1], " → ") {
				return
			}
			n := strings.LastIndex(texts[1], ": ")
			request, response, _ := strings.Cut(texts[1][n+2:], " → ")
			body = append(body, []string{"`" + prefix + texts[0] + "`", text(texts[1][:n]), link(request), link(response)})
		})
		if len(body) == before {
			t.Fatalf("%s serves no verbs any more", dir)
		}
	}
	slices.SortFunc(body, slices.Compare[[]string])
	return table([]string{"subject", "what it does", "request", "answer"}, body)
}

func api(t *testing.T) string {
	return verbs(t, "drover.<ns>.api.", "broker", "ops/alwayson", "ops/bulk", "ops/operations", "ops/recycle", "ops/retention", "ops/schedules", "ops/visibility", "ops/windows")
}

func namespaceAPI(t *testing.T) string {
	return verbs(t, schemas.NamespaceSubject(""), "broker/namespaces")
}

func toJSON(v any) string {
	b, err := schemas.MarshalJSON(v)
	if err != nil {
		return err.Error()
	}
	return "`" + string(b) + "`"
}

func payloadRows() [][]string {
	ref := &schemas.PayloadRef{Object: "in-3-17-c1-0", Size: 300000, Digest: strings.Repeat("0", 64)}
	var body [][]string
	for _, p := range []struct {
		what  string
		value schemas.Payload
	}{
		{"JSON: that value", schemas.Text(`{"amount":12.5}`)},
		{"a JSON text", schemas.Text(`"hi"`)},
		{"other text", schemas.Text("hi")},
		{"bytes that are no text", schemas.Payload{0xff, 0x00}},
		{"nothing", nil},
		{"JSON that looks like one of these forms", schemas.Text(`{"$text":"hi"}`)},
		{"a reference to a large payload", schemas.RefPayload(ref)},
	} {
		shown := "`" + string(p.value) + "`"
		switch {
		case p.value == nil:
			shown = ""
		case p.value[0] == 0xff:
			shown = "`ff 00`"
		case p.value[0] == 0:
			shown = ""
		}
		body = append(body, []string{p.what, shown, toJSON(p.value)})
	}
	return body
}

func payloadTable(*testing.T) string {
	return table([]string{"payload", "its bytes", "in JSON"}, payloadRows())
}

func units(*testing.T) string {
	var body [][]string
	for _, d := range []schemas.Duration{schemas.Seconds(90), schemas.Seconds(0.5), schemas.Duration(1), schemas.Unlimited} {
		body = append(body, []string{"duration", d.String(), toJSON(d), "`" + strconv.FormatInt(int64(d), 10) + "`"})
	}
	at := schemas.At(time.Date(2024, 5, 6, 7, 8, 9, 123456789, time.UTC))
	for _, ts := range []schemas.Timestamp{at, 0} {
		name := ts.String()
		if ts == 0 {
			name = "not set"
		}
		body = append(body, []string{"time", name, toJSON(ts), "`" + strconv.FormatInt(int64(ts), 10) + "`"})
	}
	return table([]string{"type", "value", "in JSON", "in msgpack"}, body)
}

func limits(*testing.T) string {
	c := execution.Config{}.Defaults()
	n := strconv.Itoa
	return table([]string{"limit", "value"}, [][]string{
		{"ids (workflow, run, activity, timer, signal, marker, request, type), bytes", n(schemas.MaxIDLen)},
		{"names of namespaces and task lists, and run ids, bytes", n(schemas.MaxNameLen)},
		{"tags of a run", n(schemas.MaxTags)},
		{"version of a type, bytes", n(schemas.MaxTypeVersionLen)},
		{"description of a type, bytes", n(schemas.MaxTypeDescriptionLen)},
		{"types of one kind in a namespace", n(schemas.MaxTypesOfAKind)},
		{"a payload in a message or a history, bytes; larger ones become references", n(schemas.PayloadThreshold)},
		{"events of a run; then decisions that lengthen it are refused, and a tenth further the run is terminated", strconv.FormatInt(c.MaxEvents, 10)},
		{"open activities of a run", n(c.OpenActivities)},
		{"open timers of a run", n(c.OpenTimers)},
		{"open children of a run", n(c.OpenChildren)},
		{"unanswered signals and cancel requests of a run to others", n(c.OpenExternals)},
		{"ancestors of a run", n(c.ChildDepth)},
		{"failures of a decider in a row before the run is paused", n(c.DeciderAttempts)},
		{"time for a run, if its start and type name none", c.WorkflowTimeout.String()},
		{"time for a decision, likewise", c.DeciderTimeout.String()},
		{"time for an attempt of an activity (start to close), likewise", c.StartToClose.String()},
		{"child policy, likewise", string(c.ChildPolicy)},
	})
}

// Headers of ours are the constants that begin with Drover-, and those of NATS that a client of ours sets or reads.
func TestHeaders(t *testing.T) {
	paper := column(section(t, "reference/streams.md", "## Headers"), 0)
	found := map[string]bool{schemas.ContentTypeHeader: true}
	for _, dir := range []string{"broker", "broker/partition", "broker/partition/actor", "broker/partition/decisions", "broker/partition/env", "broker/runs", "broker/topology", "signals", "decider", "activity", "schemas"} {
		for _, c := range source(t, dir).Constants {
			if strings.HasPrefix(c.Value, "Drover-") || c.Value == "Nats-Msg-Id" {
				found[c.Value] = true
			}
		}
	}
	for _, c := range source(t, "broker/natsconn").Constants {
		if strings.HasPrefix(c.Value, "Nats-Expected-") || strings.HasPrefix(c.Value, "Drover-") || c.Value == "Nats-TTL" {
			found[c.Value] = true
		}
	}
	var code []string
	for h := range found {
		code = append(code, h)
	}
	same(t, "headers", paper, code)
}

// The kinds of inbox messages are the cases of the switch that opens them.
func TestInboxKinds(t *testing.T) {
	p := source(t, "broker/partition")
	var kinds []string
	p.Each(func(n ast.Node) {
		s, ok := n.(*ast.SwitchStmt)
		if !ok {
			return
		}
		if tag, ok := s.Tag.(*ast.Ident); !ok || tag.Name != "kind" {
			return
		}
		for _, c := range s.Body.List {
			for _, e := range c.(*ast.CaseClause).List {
				kind, ok := literal(e)
				if sel, named := e.(*ast.SelectorExpr); named {
					for _, c := range source(t, "broker/partition/actor").Constants {
						if c.Name == sel.Sel.Name {
							kind, ok = c.Value, true
						}
					}
				}
				if !ok {
					t.Fatalf("a case of the switch over kinds is no text: %v", e)
				}
				kinds = append(kinds, kind)
			}
		}
	})
	same(t, "inbox kinds", column(section(t, "reference/tasks.md", "### Kinds of inbox messages"), 0), kinds)
	for _, name := range column(section(t, "reference/tasks.md", "### Kinds of inbox messages"), 1) {
		if !slices.Contains(jsonschema.Names(), name) {
			t.Errorf("%q is no message", name)
		}
	}
}
