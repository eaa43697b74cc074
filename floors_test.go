package drover_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/droverhq/drover"

// floors is the height of each package, the root package's is under "root". A package may import lower floors only.
// A key that ends in a slash stands for every package below that folder. A package without a floor fails the test;
// a floor without a package is one that is yet to come.
//
// internal/… is floor 0 and needs no line.
var floors = map[string]int{
	"schemas/codec":    9, // encodings, below the words
	"schemas":          10,
	"schemas/ops":      11, // the words of schedules, always-on workflows and recycles
	"contract":         11, // what workflows, workers and clients agree on
	"schemas/":         12, // JSON Schemas, requirements
	"broker/subject":   10,
	"broker/execution": 20,
	"broker/checker":   20,
	"broker/stats":     21, // what roles count
	"broker/clock":     20,
	"broker/openruns":  20,
	"broker/natsconn":  20,
	"broker/embedded":  20,
	"broker/embedded/": 21, // servers for tests
	"broker/topology":  21,
	"broker/claims":    21,
	"broker/locks":     20,
	"broker/states":    20,
	"broker/nodes":     21,
	"broker/nearby":    21,
	"broker/dead":      21,
	"broker/history":   21,
	"broker/explain":   21,
	"broker/payloads":  21,
	"broker/bucket":    21,
	"broker/runs":      22,
	"broker/types":     23,
	"broker/validate":  21,
	"broker":           30,
	"decider":          30,
	"activity":         30,
	"timers":           30,
	"signals":          30,
	"timers/calendar":  20, // pure
	"decider/":         31, // workflow and flow are built on the raw decider
	"activity/":        31, // kinds of activities
	"root":             40,
	"ops":              40,
	"ops/":             41,
	"ops/permissions":  40, // a table; the doctor judges by it
	"ops/operations":   40,
	"ops/query":        25, // a language, pure like that of flows
	"ops/index":        26, // the rows that it asks for
	"ops/service":      39,
	"ops/spans":        40, // what owners tell
	"ops/windows":      42, // of schedules
	"ops/metrics":      42, // shows what the others do
	"server":           43,
	"server/":          42, // wiring of the roles
	"drovertest":       45,
	"e2e/":             49,
	"e2e/kit":          48, // processes for the others
	"e2e/load":         48, // and work
	"cmd/drover":       50,
	"e2e":              50,
	"examples/":        50,
	"docs":             50, // tests of the papers

	"broker/namespaces": 22, // a service on topology

	// The parts of a partition, which do not know it.
	"broker/partition":           29, // the owner of a partition
	"broker/partition/":          23,
	"broker/partition/watermark": 22, // all of them use it
	"broker/partition/loop":      22,
	"broker/partition/actor":     24, // what is known of a run
	"broker/partition/locking":   26,
	"broker/partition/cache":     26,
	"broker/partition/writer":    26,
	"broker/partition/alarms":    25,
	"broker/partition/repeats":   26, // reads histories of package runs
	"broker/partition/replays":   26,
	"broker/partition/dispatch":  26,
	"broker/partition/large":     26,
	"broker/partition/inspect":   26, // the alarms say when at the latest
	"broker/partition/decisions": 26,
	"broker/partition/ahead":     27,
	"broker/partition/probes":    28,
	"broker/partition/exchange":  27,
	"broker/partition/handover":  27,
	"broker/partition/env":       24, // what the partitions of a broker share
	"broker/partition/env/":      25, // and what tests of the parts need

	// The parts of the decider worker.
	"decider/internal/":                 29,
	"decider/workflow/internal/":        29, // workflow code is run by these
	"decider/workflow/internal/machine": 30,

	// The command line. Some folders of commands use another: "flow run" has a worker, and waits for a run.
	"cmd/drover/":          49,
	"cmd/drover/workflows": 48,
	"cmd/drover/serve":     48,
	"cmd/drover/cli":       47,

	// What drover init copies.
	"examples":                  46,
	"examples/signup/contracts": 49,

	// The language of flows: pure, so below everything that works.
	"decider/flow/syntax":      24,
	"decider/flow/value":       25,
	"decider/flow/backoff":     26,
	"decider/flow/concurrency": 26,
	"decider/flow/expr":        26,
	"decider/flow/condition":   27,
	"decider/flow/shorthand":   25,
	"decider/flow/model":       26,
	"decider/flow/graph":       27,
	"decider/flow/run":         28,
	"decider/flow/machine":     29,
	"decider/flow/define":      30,
	"decider/flow/store":       31,
	"decider/flow/deployed":    32,
}

// Packages that are functions of their arguments: no clock, no dice, no goroutines, no logger.
var pure = []string{
	"contract", "schemas", "schemas/codec", "schemas/ops", "schemas/requirement", "broker/execution", "broker/locks", "broker/states", "broker/checker", "broker/explain", "broker/validate", "internal/duration", "internal/retention",
	"decider/flow/syntax", "decider/flow/value", "decider/flow/shorthand", "decider/flow/backoff", "decider/flow/concurrency", "decider/flow/expr", "decider/flow/condition", "decider/flow/model", "decider/flow/run", "decider/flow/machine",
	"decider/flow/define", "decider/flow/graph", "timers/calendar", "ops/query",
}

var pureForbids = []string{"context", "sync", "math/rand", "crypto/rand", "log", "github.com/sirupsen/logrus", "github.com/nats-io"}

// namesConn are the packages that users hand the connection to which they have, so that these name its type. What is
// said over it goes through broker/natsconn.
var namesConn = []string{"root", "decider", "activity", "signals", "timers"}

// The clock itself. The types and the arithmetic of package time are values like others.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

// The sources are read, not listed by the go command: so files for other systems count too, and the test cache
// notices every change.
func TestFloors(t *testing.T) {
	homeless := map[string]bool{}
	for _, f := range sources(t) {
		if _, ok := floorOf(f.pkg); !ok && !homeless[f.pkg] {
			t.Errorf("%s: package %s has no floor: add it to the table", f.name, f.pkg)
			homeless[f.pkg] = true
		}
		for _, imp := range f.imports {
			for _, complaint := range judge(f, imp.path) {
				t.Errorf("%s: %s", imp.pos, complaint)
			}
		}
		for _, use := range f.clock {
			t.Errorf("%s: %s is pure: the time comes in as an argument", use, f.pkg)
		}
		for _, use := range f.bubbles {
			t.Errorf("%s: a bubble that leaves timers in the NATS client's pool ends a later test of its package: use virtual.Run", use)
		}
	}
}

// The rules are worth something only if they catch what they forbid.
func TestFloorsCatch(t *testing.T) {
	for _, tc := range []struct {
		pkg, imp string
		test     bool
		allowed  bool
	}{
		{pkg: "broker", imp: module + "/schemas", allowed: true},
		{pkg: "broker", imp: module + "/broker/execution", allowed: true},
		{pkg: "broker/execution", imp: module + "/broker"},
		{pkg: "broker/execution", imp: module + "/broker/subject"},
		{pkg: "broker/execution", imp: module + "/schemas", allowed: true},
		{pkg: "broker/execution", imp: "time"},
		{pkg: "broker/execution", imp: "time", test: true, allowed: true},
		{pkg: "schemas", imp: "time", allowed: true},
		{pkg: "schemas", imp: "sync"},
		{pkg: "schemas", imp: "sync/atomic"},
		{pkg: "schemas", imp: "context"},
		{pkg: "schemas", imp: "context", test: true, allowed: true},
		{pkg: "schemas", imp: "math/rand/v2"},
		{pkg: "schemas", imp: "math", allowed: true},
		{pkg: "schemas", imp: "log/slog"},
		{pkg: "broker/checker", imp: "github.com/sirupsen/logrus"},
		{pkg: "broker/topology", imp: module + "/broker/natsconn", allowed: true},
		{pkg: "broker/claims", imp: module + "/broker/topology"},
		{pkg: "activity", imp: module + "/decider"},
		{pkg: "activity/shell", imp: module + "/decider"},
		{pkg: "activity/shell", imp: module + "/activity", allowed: true},
		{pkg: "decider/flow", imp: module + "/decider", allowed: true},
		{pkg: "decider/flow", imp: module + "/decider/flow/expr", allowed: true},
		{pkg: "decider/flow/expr", imp: module + "/decider/flow/value", allowed: true},
		{pkg: "decider/flow/expr", imp: module + "/broker/natsconn"},
		{pkg: "decider/flow/expr", imp: module + "/decider"},
		{pkg: "decider/flow/expr", imp: "math/rand/v2"},
		{pkg: "decider/flow", imp: module + "/decider/workflow"},
		{pkg: "ops", imp: module},
		{pkg: "ops", imp: module + "/timers", allowed: true},
		{pkg: "root", imp: module + "/broker", allowed: true},
		{pkg: "root", imp: module + "/cmd/drover"},
		{pkg: "cmd/drover", imp: module, allowed: true},
		{pkg: "examples/a/b", imp: module, allowed: true},
		{pkg: "internal/a", imp: module + "/internal/b", allowed: true},
		{pkg: "internal/a", imp: module + "/schemas"},
		{pkg: "schemas", imp: module + "/internal/a", allowed: true},
		{pkg: "broker", imp: module + "/nowhere"},
		{pkg: "cmd/drover", imp: module + "/bench"},
		{pkg: "broker/natsconn", imp: "github.com/nats-io/nats.go", allowed: true},
		{pkg: "cmd/drover", imp: "github.com/nats-io/nats.go/jetstream", allowed: true},
		{pkg: "decider", imp: "github.com/nats-io/nats.go", allowed: true},
		{pkg: "decider", imp: "github.com/nats-io/nats.go/jetstream"},
		{pkg: "decider/flow", imp: "github.com/nats-io/nats.go"},
		{pkg: "decider/flow", imp: "github.com/nats-io/nats.go", test: true},
		{pkg: "examples/a", imp: "github.com/nats-io/nats.go"},
		{pkg: "examples/a", imp: "github.com/nats-io/nats.go", test: true, allowed: true},
		{pkg: "broker/embedded", imp: "github.com/nats-io/nats-server/v2/server", allowed: true},
		{pkg: "e2e", imp: "github.com/nats-io/nats-server/v2/server", allowed: true},
		{pkg: "cmd/drover", imp: "github.com/nats-io/nats-server/v2/server"},
		{pkg: "broker/natsconn", imp: "github.com/nats-io/nats-server/v2/server"},
		{pkg: "broker/natsconn", imp: "github.com/nats-io/nats-server/v2/server", test: true, allowed: true},
		{pkg: "ops", imp: "github.com/nats-io/nats-server/v2/server", test: true},
	} {
		got := judge(source{pkg: tc.pkg, test: tc.test}, tc.imp)
		if (len(got) == 0) != tc.allowed {
			t.Errorf("%s imports %s (test file: %v): got %v, want allowed %v", tc.pkg, tc.imp, tc.test, got, tc.allowed)
		}
	}
}

// Calls are found under whatever name a file imports their package, and nowhere else.
func TestFloorsFindUses(t *testing.T) {
	for src, want := range map[string][]string{
		`package a; import "time"; var _ = time.Now()`:            {"a.go:1:35"},
		`package a; import clock "time"; var _ = clock.Now()`:     {"a.go:1:41"},
		`package a; import "time"; var _ time.Time`:               nil,
		`package a; var time struct{ Now int }; var _ = time.Now`: nil,
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "a.go", src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := uses(fset, file, "time", clock...); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", src, got, want)
		}
	}
}

// source is what the rules need to know of one file.
type source struct {
	name    string // slash-separated, from the module's root
	pkg     string // import path below the module, or "root"
	test    bool
	imports []imported
	clock   []string // positions of calls of the clock in a pure package
	bubbles []string // positions of bubbles that package virtual has not cleaned up after
}

type imported struct{ path, pos string }

// judge returns what is wrong with an import.
func judge(f source, imp string) []string {
	if within(imp, module) {
		return judgeOwn(f, cmpRoot(strings.TrimPrefix(strings.TrimPrefix(imp, module), "/")))
	}
	var complaints []string
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	if !f.test && slices.Contains(pure, f.pkg) && slices.ContainsFunc(pureForbids, func(p string) bool { return within(imp, p) }) {
		complain("%s is pure: it may not import %s", f.pkg, imp)
	}
	if !f.test && f.pkg == "broker/execution" && imp == "time" {
		complain("%s knows no clock: use the durations and timestamps of schemas", f.pkg)
	}
	top := within(f.pkg, "cmd") || within(f.pkg, "e2e")
	if imp == "github.com/nats-io/nats.go" && slices.Contains(namesConn, f.pkg) {
		return complaints
	}
	if within(imp, "github.com/nats-io/nats.go") && !within(f.pkg, "broker") && !top && !(f.test && within(f.pkg, "examples")) {
		complain("%s imports %s: only broker/… speaks NATS, go through broker/natsconn", f.pkg, imp)
	}
	server := within(f.pkg, "broker/embedded") || within(f.pkg, "e2e") || f.test && within(f.pkg, "broker")
	if within(imp, "github.com/nats-io/nats-server") && !server {
		complain("%s imports %s: 20 MB that no client needs, use broker/embedded", f.pkg, imp)
	}
	return complaints
}

// judgeOwn judges an import of this module. Test files may import any floor: what they link is shipped to nobody.
func judgeOwn(f source, imp string) []string {
	if within(imp, "bench") {
		return []string{fmt.Sprintf("%s imports %s: bench is a module of its own, its peers never enter this one", f.pkg, imp)}
	}
	mine, housed := floorOf(f.pkg)
	theirs, ok := floorOf(imp)
	switch {
	case !housed: // TestFloors says so once, for the whole package
		return nil
	case !ok:
		return []string{fmt.Sprintf("%s imports %s, which has no floor", f.pkg, imp)}
	case f.test || within(imp, "internal"):
		return nil
	case theirs >= mine:
		return []string{fmt.Sprintf("%s (floor %d) imports %s (floor %d)", f.pkg, mine, imp, theirs)}
	case mine/10 == 3 && theirs/10 == 3 && family(f.pkg) != family(imp):
		return []string{fmt.Sprintf("%s imports %s: workers are strangers to each other, they meet in schemas and broker", f.pkg, imp)}
	case slices.Contains(pure, f.pkg) && !slices.Contains(pure, imp):
		return []string{fmt.Sprintf("%s imports %s: the pure packages know each other only", f.pkg, imp)}
	}
	return nil
}

func floorOf(pkg string) (floor int, ok bool) {
	if within(pkg, "internal") {
		return 0, true
	}
	if floor, ok = floors[pkg]; ok {
		return floor, true
	}
	for dir := path.Dir(pkg); dir != "."; dir = path.Dir(dir) {
		if floor, ok = floors[dir+"/"]; ok {
			return floor, true
		}
	}
	return 0, false
}

func family(pkg string) string { first, _, _ := strings.Cut(pkg, "/"); return first }

func within(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

func cmpRoot(pkg string) string {
	if pkg == "" || pkg == "." {
		return "root"
	}
	return pkg
}

// sources reads every Go file of the module; nested modules and what the go command leaves out stay out.
func sources(t *testing.T) []source {
	t.Helper()
	var files []source
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return enter(name, d.Name())
		}
		if filepath.Ext(name) != ".go" || strings.HasPrefix(d.Name(), "_") || strings.HasPrefix(d.Name(), ".") {
			return nil
		}
		f, err := parse(fset, name)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 2 {
		t.Fatalf("got %d files, want the module's", len(files))
	}
	return files
}

func enter(name, base string) error {
	if name == "." {
		return nil
	}
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "vendor" {
		return fs.SkipDir
	}
	switch _, err := os.Stat(filepath.Join(name, "go.mod")); {
	case err == nil:
		return fs.SkipDir
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

func parse(fset *token.FileSet, name string) (source, error) {
	f := source{name: filepath.ToSlash(name), test: strings.HasSuffix(name, "_test.go")}
	f.pkg = cmpRoot(path.Dir(f.name))
	file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
	if err != nil {
		return f, err
	}
	for _, spec := range file.Imports {
		imp, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return f, err
		}
		f.imports = append(f.imports, imported{path: imp, pos: fset.Position(spec.Pos()).String()})
	}
	if !f.test && slices.Contains(pure, f.pkg) {
		f.clock = uses(fset, file, "time", clock...)
	}
	if f.pkg != "internal/virtual" {
		f.bubbles = uses(fset, file, "testing/synctest", "Test")
	}
	return f, nil
}

// uses returns the positions at which the file names one of these of a package of the standard library.
func uses(fset *token.FileSet, file *ast.File, pkg string, names ...string) (positions []string) {
	as := "" // the name under which the file knows the package
	for _, spec := range file.Imports {
		if spec.Path.Value == strconv.Quote(pkg) {
			as = path.Base(pkg)
			if spec.Name != nil {
				as = spec.Name.Name
			}
		}
	}
	if as == "" {
		return nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains(names, sel.Sel.Name) {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == as {
				positions = append(positions, fset.Position(sel.Pos()).String())
			}
		}
		return true
	})
	return positions
}
