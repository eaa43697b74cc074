package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// The limits of lines of a package of production code.
const (
	limitConcurrent = 3500 // with goroutines of its own
	limitPure       = 5500
)

// size is what some files amount to.
type size struct{ files, lines, bytes, code int }

func (s *size) add(f source) {
	s.files++
	s.lines += bytes.Count(f.text, []byte("\n"))
	s.bytes += len(f.text)
	s.code += len(f.code)
}

type pack struct {
	name              string
	production, tests size
	goroutines        bool // its production code starts some
}

// product tells whether a package is production code in the sense of the bars.
func (p *pack) product() bool {
	first, _, _ := strings.Cut(p.name, "/")
	return !slices.Contains([]string{"bench", "docs", "e2e", "examples"}, first)
}

// aside tells whether the limits of lines do not hold for a package: the only speaker of NATS.
func (p *pack) aside() bool {
	return path.Base(p.name) == "natsconn"
}

func (p *pack) limit() int {
	if p.goroutines {
		return limitConcurrent
	}
	return limitPure
}

func byPackage(files []source) []*pack {
	found := map[string]*pack{}
	for _, f := range files {
		p := found[f.pkg]
		if p == nil {
			p = &pack{name: f.pkg}
			found[f.pkg] = p
		}
		if f.test {
			p.tests.add(f)
			continue
		}
		p.production.add(f)
		p.goroutines = p.goroutines || startsGoroutines(f.file)
	}
	return slices.SortedFunc(maps.Values(found),
		func(a, b *pack) int { return strings.Compare(a.name, b.name) })
}

// startsGoroutines looks for go statements, and for calls of a method Go, as sync.WaitGroup has.
func startsGoroutines(file *ast.File) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" && len(n.Args) == 1 {
				found = true
			}
		}
		return !found
	})
	return found
}

// production sums up production code without bench, examples, docs and e2e.
func production(packages []*pack) (sum size) {
	for _, p := range packages {
		if p.product() {
			sum = plus(sum, p.production)
		}
	}
	return sum
}

func plus(a, b size) size {
	return size{a.files + b.files, a.lines + b.lines, a.bytes + b.bytes, a.code + b.code}
}

// largest names the package with the most lines of production code among those that start
// goroutines, or do not, and how many are above the limit.
func largest(packages []*pack, goroutines bool) string {
	most, above := &pack{}, 0
	for _, p := range packages {
		if !p.product() || p.aside() || p.goroutines != goroutines {
			continue
		}
		if p.production.lines > most.production.lines {
			most = p
		}
		if p.production.lines > p.limit() {
			above++
		}
	}
	return fmt.Sprintf("%d (%s), %d above", most.production.lines, most.name, above)
}

func printPackages(packages []*pack) {
	table("packages",
		"package\tfiles\tlines\tbytes\tcode\tgoroutines\tlimit\ttest lines\ttest bytes\ttest code",
		func(w io.Writer) {
			var bench, rest, tests size
			for _, p := range packages {
				goroutines, limit := "", ""
				if p.goroutines {
					goroutines = "yes"
				}
				if p.product() && !p.aside() && p.production.lines > p.limit() {
					limit = fmt.Sprintf("above %d", p.limit())
				}
				row(w, p.name, p.production, goroutines+"\t"+limit, p.tests)
				tests = plus(tests, p.tests)
				switch first, _, _ := strings.Cut(p.name, "/"); {
				case first == "bench":
					bench = plus(bench, p.production)
				case !p.product():
					rest = plus(rest, p.production)
				}
			}
			row(w, "PRODUCTION", production(packages), "\t", tests)
			row(w, "bench", bench, "\t", size{})
			row(w, "docs, e2e, examples", rest, "\t", size{})
		})
	fmt.Printf("code is bytes without comments and blank lines\n\n")
}

func row(w io.Writer, name string, p size, middle string, t size) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\t%d\t%d\t%d\n",
		name, p.files, p.lines, p.bytes, p.code, middle, t.lines, t.bytes, t.code)
}
