package docs_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/internal/gosource"
)

// entries are the third-level headings of a section of errors.md with the text below each.
func entries(t *testing.T, heading string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, part := range strings.Split("\n"+section(t, "reference/errors.md", heading), "\n### `")[1:] {
		name, body, _ := strings.Cut(part, "`\n")
		if all[name] != "" {
			t.Errorf("%s: %s stands twice", heading, name)
		}
		all[name] = body
	}
	return all
}

// complete checks that the entries are those of the code, and that each tells cause, remedy and example.
func complete(t *testing.T, heading string, code []string) map[string]string {
	t.Helper()
	all := entries(t, heading)
	var paper []string
	for name, body := range all {
		paper = append(paper, name)
		rest := body
		for _, part := range []string{"\n**Cause.** ", "\n**Remedy.** ", "\n**Example.** "} {
			_, after, ok := strings.Cut(rest, part)
			if !ok || len(strings.TrimSpace(after)) < 5 {
				t.Errorf("%s, %s: want%s in this order", heading, name, part)
			}
			rest = after
		}
	}
	same(t, heading, paper, slices.Compact(slices.Sorted(slices.Values(code))))
	return all
}

func constantsOf(t *testing.T, dir, typ string) []string {
	t.Helper()
	var all []string
	for _, c := range source(t, dir).ConstantsOf(typ) {
		all = append(all, c.Value)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no constants of the type %s any more", dir, typ)
	}
	return all
}

// sentinels are the names of the errors of the root package by their codes.
func sentinels(t *testing.T) map[string]string {
	codes, all := map[string]string{}, map[string]string{}
	for _, c := range source(t, "schemas").ConstantsOf("Code") {
		codes[c.Name] = c.Value
	}
	source(t, ".").Each(func(n ast.Node) {
		kv, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return
		}
		key, isSelector := kv.Key.(*ast.SelectorExpr)
		if sentinel, isName := kv.Value.(*ast.Ident); isSelector && isName && codes[key.Sel.Name] != "" {
			all[codes[key.Sel.Name]] = "drover." + sentinel.Name
		}
	})
	return all
}

func sentinel(t *testing.T, codes []string) string {
	name := sentinels(t)[codes[0]]
	if name == "" {
		t.Errorf("%s has no sentinel in the root package", codes[0])
	}
	return "In Go `" + name + "`."
}

// The sentinel of each code stands in its entry.
func TestCodes(t *testing.T) {
	all := complete(t, "## Codes", constantsOf(t, "schemas", "Code"))
	for code, name := range sentinels(t) {
		if !strings.Contains(all[code], "`"+name+"`") {
			t.Errorf("the entry of %s does not name %s", code, name)
		}
	}
	if len(sentinels(t)) != len(all) {
		t.Errorf("%d codes have sentinels, of %d", len(sentinels(t)), len(all))
	}
}

func TestCauses(t *testing.T) {
	complete(t, "## Causes", constantsOf(t, "schemas", "Cause"))
}

func TestExitCodes(t *testing.T) {
	var codes []string
	source(t, "cmd/drover/cli").Each(func(n ast.Node) {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Exit") {
			return
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.INT {
			codes = append(codes, lit.Value)
		}
	})
	complete(t, "## Exit codes", codes)
}

// fieldLiterals are the texts of a field in all composite literals of a type of one name.
func fieldLiterals(p *gosource.Package, typ, field string) []string {
	var all []string
	p.Each(func(n ast.Node) {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return
		}
		name := ""
		switch typ := lit.Type.(type) {
		case *ast.SelectorExpr:
			name = typ.Sel.Name
		case *ast.Ident:
			name = typ.Name
		}
		for _, e := range lit.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok && name == typ {
				if key, ok := kv.Key.(*ast.Ident); ok && key.Name == field {
					if s, ok := literal(kv.Value); ok {
						all = append(all, s)
					}
				}
			}
		}
	})
	return all
}

// reasons are the constants of a package whose names begin with a prefix.
func reasons(t *testing.T, dir, prefix string) []string {
	var all []string
	for _, c := range source(t, dir).Constants {
		if strings.HasPrefix(c.Name, prefix) {
			all = append(all, c.Value)
		}
	}
	return all
}

func deadReasons(t *testing.T) []string {
	all := slices.Concat(
		reasons(t, "broker/execution", "Dead"), reasons(t, "broker/dead", "Reason"), reasons(t, "signals", "Reason"), reasons(t, "broker/partition", "dead"),
		fieldLiterals(source(t, "broker/partition"), "DeadLetter", "Reason"),
		fieldLiterals(source(t, "broker/dead"), "DeadLetter", "Reason"), fieldLiterals(source(t, "signals"), "DeadLetter", "Reason"),
	)
	source(t, "broker/partition").Each(func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 {
			return
		}
		if fn, ok := call.Fun.(*ast.SelectorExpr); ok && fn.Sel.Name == "bury" {
			if s, ok := literal(call.Args[1]); ok {
				all = append(all, s)
			}
		}
	})
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

func TestDeadLetters(t *testing.T) {
	all := deadReasons(t)
	complete(t, "## Dead letters", all)
	same(t, "reasons in dead-letters.md", column(section(t, "reference/dead-letters.md", "## Reasons of dead letters"), 0), all)
}

func TestFailedActivities(t *testing.T) {
	code := slices.Concat(
		reasons(t, "activity", "Reason"), reasons(t, "activity/kinds", "Reason"), reasons(t, "schemas", "Reason"),
		reasons(t, "activity/kinds", "statusReason"), reasons(t, "activity/kinds", "serviceReason"),
		fieldLiterals(source(t, "broker/execution"), "ActivityFailed", "Reason"),
		[]string{"failed"}, // of activity.Fail without a reason
	)
	text := section(t, "reference/errors.md", "## Failed activities")
	same(t, "reasons", column(text, 0), slices.Compact(slices.Sorted(slices.Values(code))))
	for _, r := range rows(text) {
		if len(r) != 3 || r[1] == "" || r[2] == "" {
			t.Errorf("%v: want reason, cause and remedy", r)
		}
	}
}

// The fields of a claim are those of the struct that is written.
func TestClaimFields(t *testing.T) {
	var tags []string
	source(t, "broker/claims").Each(func(n ast.Node) {
		typ, ok := n.(*ast.TypeSpec)
		if !ok || typ.Name.Name != "value" {
			return
		}
		for _, f := range typ.Type.(*ast.StructType).Fields.List {
			_, tag, _ := strings.Cut(f.Tag.Value, `json:"`)
			tag, _, _ = strings.Cut(tag, `"`)
			name, _, _ := strings.Cut(tag, ",")
			tags = append(tags, name)
		}
	})
	same(t, "fields of a claim", column(section(t, "reference/streams.md", "## Claims"), 0), tags)
}
