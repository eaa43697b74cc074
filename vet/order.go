package vet

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// mapRange finds a range over a map whose order shows in what is asked for, or is appended.
func (w *walker) mapRange(n *ast.RangeStmt) {
	if !w.isMap(n.X) {
		return
	}
	if w.as == working && w.asks(n.Body) != nil {
		w.found(finding{pos: n.Pos(), what: "a range over a map that asks for something", use: sortKeys})
		return
	}
	ast.Inspect(n.Body, func(in ast.Node) bool {
		assign, ok := in.(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != len(assign.Rhs) {
			return true
		}
		for i, rhs := range assign.Rhs {
			to := w.variable(assign.Lhs[i])
			if to == nil || !w.isAppend(rhs) || n.Pos() <= to.Pos() && to.Pos() < n.End() ||
				w.sortedAfter(n, to) {
				continue
			}
			w.found(finding{
				pos: assign.Pos(), what: "an append to " + to.Name() + " in the order of a map",
				use: sortFirst, local: true,
			})
		}
		return true
	})
}

// isMap tells whether a range goes over a map, or over the iterators of package maps.
func (w *walker) isMap(x ast.Expr) bool {
	if call, ok := ast.Unparen(x).(*ast.CallExpr); ok {
		fn, _ := typeutil.Callee(w.TypesInfo, call).(*types.Func)
		if fn != nil && isKeys(fn) {
			return true
		}
	}
	t := w.TypesInfo.TypeOf(x)
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// isKeys tells whether a function returns what a map has, in the order of the map.
func isKeys(fn *types.Func) bool {
	if fn.Pkg() == nil || fn.Pkg().Path() != "maps" && fn.Pkg().Path() != "golang.org/x/exp/maps" {
		return false
	}
	return fn.Name() == "Keys" || fn.Name() == "Values" || fn.Name() == "All"
}

// keys finds a call of maps.Keys and others whose order shows. Ranges over it are found elsewhere.
func (w *walker) keys(call *ast.CallExpr, stack []ast.Node) {
	for i := len(stack) - 1; i >= 0; i-- {
		switch s := stack[i].(type) {
		case *ast.RangeStmt:
			if within(call, s.X) {
				return
			}
		case *ast.CallExpr:
			fn, _ := typeutil.Callee(w.TypesInfo, s).(*types.Func)
			if fn != nil && (isSort(fn) || fn.Pkg() != nil && fn.Pkg().Path() == "maps") {
				return
			}
		case *ast.AssignStmt:
			if to := w.variable(s.Lhs[0]); to != nil && w.sortedAfter(s, to) {
				return
			}
		}
	}
	w.found(finding{
		pos: call.Pos(), what: "what a map has, in an order that differs each time,", use: sortFirst,
		local: true,
	})
}

// sortedAfter tells whether the function sorts a variable once a node is over.
func (w *walker) sortedAfter(n ast.Node, v types.Object) (yes bool) {
	ast.Inspect(w.body, func(in ast.Node) bool {
		call, ok := in.(*ast.CallExpr)
		if !ok || yes || call.Pos() < n.End() {
			return !yes
		}
		if fn, _ := typeutil.Callee(w.TypesInfo, call).(*types.Func); fn != nil && isSort(fn) {
			ast.Inspect(call, func(in ast.Node) bool {
				id, ok := in.(*ast.Ident)
				yes = yes || ok && w.TypesInfo.Uses[id] == v
				return true
			})
		}
		return !yes
	})
	return yes
}

// isSort tells whether a function sorts, by its name: those of packages sort and slices do.
func isSort(fn *types.Func) bool {
	return strings.HasPrefix(strings.ToLower(fn.Name()), "sort") ||
		fn.Pkg() != nil && fn.Pkg().Path() == "sort"
}

// variable is the variable or field that an expression names; nil of others, such as m[k].
func (w *walker) variable(e ast.Expr) types.Object {
	switch x := ast.Unparen(e).(type) {
	case *ast.Ident:
		return w.TypesInfo.ObjectOf(x)
	case *ast.SelectorExpr:
		return w.TypesInfo.ObjectOf(x.Sel)
	case *ast.StarExpr:
		return w.variable(x.X)
	}
	return nil
}

func (w *walker) isAppend(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	b, ok := typeutil.Callee(w.TypesInfo, call).(*types.Builtin)
	return ok && b.Name() == "append"
}

// asks returns the first call in a tree that asks the engine for something, or may do so.
func (w *walker) asks(root ast.Node) (first *ast.CallExpr) {
	ast.Inspect(root, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || first != nil {
			return first == nil
		}
		fn, _ := typeutil.Callee(w.TypesInfo, call).(*types.Func)
		if fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == workflowPath {
			if !reads[nameOf(fn)] {
				first = call
			}
			return true
		}
		for _, arg := range call.Args {
			if isType(w.TypesInfo.TypeOf(arg), workflowPath, "Context") {
				first = call
			}
		}
		return true
	})
	return first
}
