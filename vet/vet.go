// Package vet finds what code of workflows must not do. drover-vet is the command:
//
//	go install github.com/droverhq/drover/vet/drover-vet@latest
//	go vet -vettool=$(which drover-vet) ./...
//
// Workflow code is a function that takes a workflow.Context, and what it declares inside. It must
// do the same each time it is called again, so it may not use the clock, chance, the environment or
// goroutines. The functions that it calls are looked at, too. For the standard library there is a
// list of names, and what is not in it is trusted.
//
// The functions that are given to workflow.Do and workflow.Once may do what they like, and so may
// those that take a context.Context: workflow code has none to give.
//
// A comment at the end of a line, or above it, says that something is as it should be:
//
//	//drover:ok it is only written to the log
package vet

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Analyzer reports code of workflows that a replay could not repeat.
var Analyzer = &analysis.Analyzer{
	Name:      "drover",
	Doc:       "report code of workflows that does not do the same each time",
	Run:       run,
	FactTypes: []analysis.Fact{new(unfit)},
}

// unfit is the fact that workflow code may not call a function.
type unfit struct {
	What   string // what it has, such as "time.Now"
	At     string // where: file:line
	Use    string // the way out
	Module string // that of the function
	// Local means that it is no concern of workflows in other modules: a cache, the order of a map.
	Local bool
}

// AFact implements [analysis.Fact].
func (*unfit) AFact() {}

// String implements [fmt.Stringer].
func (u *unfit) String() string { return u.What + " at " + u.At }

// finding is something that workflow code must not do.
type finding struct {
	pos       token.Pos
	what, use string
	local     bool // see unfit
}

type checker struct {
	*analysis.Pass
	silent  map[line]bool
	helpers []*helper
	unfit   map[*types.Func]*unfit // functions of this package
}

// helper is a function that takes no workflow.Context, but may be called by one that does.
type helper struct {
	fn    *types.Func
	found []finding // of its own
	calls []*types.Func
}

func run(pass *analysis.Pass) (any, error) {
	if len(pass.Files) == 0 || pass.TypesInfo == nil || trusted(pass) {
		return nil, nil
	}
	c := &checker{Pass: pass, unfit: map[*types.Func]*unfit{}}
	if err := c.readComments(); err != nil {
		return nil, err
	}
	c.eachFunction(func(fn *types.Func, decl *ast.FuncDecl) {
		if fn != nil && !takesContext(fn.Signature()) {
			h := &helper{fn: fn}
			c.helpers = append(c.helpers, h)
			(&walker{checker: c, as: helping, helper: h, body: decl.Body}).walk(decl.Body)
		}
	})
	c.spread()
	for _, f := range pass.Files {
		for _, d := range f.Decls {
			w := &walker{checker: c, as: free}
			if decl, ok := d.(*ast.FuncDecl); ok && decl.Body != nil {
				fn, _ := pass.TypesInfo.Defs[decl.Name].(*types.Func)
				if w.body = decl.Body; fn != nil && takesContext(fn.Signature()) {
					w.as = working
				}
			}
			w.walk(d)
		}
	}
	return nil, nil
}

func (c *checker) eachFunction(do func(*types.Func, *ast.FuncDecl)) {
	for _, f := range c.Files {
		for _, d := range f.Decls {
			if decl, ok := d.(*ast.FuncDecl); ok && decl.Body != nil {
				fn, _ := c.TypesInfo.Defs[decl.Name].(*types.Func)
				do(fn, decl)
			}
		}
	}
}

// spread finds the helpers that are unfit since they call one that is, and exports what it knows.
func (c *checker) spread() {
	for again := true; again; {
		again = false
		for _, h := range c.helpers {
			known := c.unfit[h.fn]
			if u := c.judge(h); known == nil && u != nil || known != nil && known.Local && !u.Local {
				c.unfit[h.fn], again = u, true
				c.ExportObjectFact(h.fn, u)
			}
		}
	}
}

// judge returns what is first in a function that workflows of any module may not have; else what is
// first of all.
func (c *checker) judge(h *helper) (first *unfit) {
	for _, f := range h.found {
		u := &unfit{f.what, c.at(f.pos), f.use, modulePath(c.Pass), f.local}
		if !u.Local {
			return u
		}
		first = cmp.Or(first, u)
	}
	for _, to := range h.calls {
		u := c.unfitness(to)
		if u != nil && !u.Local {
			return u
		}
		first = cmp.Or(first, u)
	}
	return first
}

// unfitness is what is known of a function; nil if workflow code may call it.
func (c *checker) unfitness(fn *types.Func) *unfit {
	if fn.Pkg() == c.Pkg {
		return c.unfit[fn]
	}
	var u unfit
	if !c.ImportObjectFact(fn, &u) || u.Local && u.Module != modulePath(c.Pass) {
		return nil
	}
	return &u
}

func (c *checker) at(pos token.Pos) string {
	p := c.Fset.Position(pos)
	return fmt.Sprintf("%s:%d", filepath.Base(p.Filename), p.Line)
}

func modulePath(pass *analysis.Pass) string {
	if pass.Module == nil {
		return ""
	}
	return pass.Module.Path
}

// trusted tells whether a package is not looked at: the standard library, and what workflows are
// built on.
func trusted(pass *analysis.Pass) bool {
	path := pass.Pkg.Path()
	module := modulePath(pass)
	if first, _, _ := strings.Cut(path, "/"); standard[first] && (module == "" || module == "std") {
		return true
	}
	for _, root := range roots {
		if path == root || strings.HasPrefix(path, root+"/") {
			return true
		}
	}
	return false
}
