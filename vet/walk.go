package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/types/typeutil"
)

// mode is how code is looked at.
type mode int

const (
	free    mode = iota // it may do what it likes; workflow code inside of it may not
	helping             // findings are remembered with the function: a workflow may call it
	working             // it is workflow code: findings are reported
)

// walker looks at the code of one function.
type walker struct {
	*checker
	as     mode
	helper *helper // if as is helping
	body   ast.Node
	given  map[types.Object]bool // variables with functions that may do what they like
}

// walk looks at a tree, and at functions in it by what they are.
func (w *walker) walk(root ast.Node) {
	if w.given == nil {
		w.given = map[types.Object]bool{}
		ast.Inspect(root, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && w.takesAnything(call) {
				for _, arg := range call.Args {
					if id, ok := ast.Unparen(arg).(*ast.Ident); ok {
						w.given[w.TypesInfo.Uses[id]] = true
					}
				}
			}
			return true
		})
	}
	ast.PreorderStack(root, nil, func(n ast.Node, stack []ast.Node) bool {
		if lit, ok := n.(*ast.FuncLit); ok {
			sig, _ := w.TypesInfo.TypeOf(lit).(*types.Signature)
			switch {
			case sig == nil:
			case takesContext(sig):
				w.enter(lit, working)
				return false
			case w.as != free && (takesNative(sig) || w.isGiven(lit, stack)):
				w.enter(lit, free)
				return false
			}
			return true
		}
		return w.as == free || w.look(n, stack)
	})
}

// enter looks at a function in the code of another. While that is looked at as a helper, it does
// not: that is for later, when all helpers are known.
func (w *walker) enter(lit *ast.FuncLit, as mode) {
	if w.as == helping {
		return
	}
	(&walker{checker: w.checker, as: as, body: lit.Body, given: w.given}).walk(lit.Body)
}

// found reports or remembers what workflow code must not do.
func (w *walker) found(f finding) {
	switch {
	case w.isSilent(f.pos):
	case w.as == helping:
		w.helper.found = append(w.helper.found, f)
	case w.as == working:
		w.Reportf(f.pos, "%s in workflow code: %s", f.what, f.use)
	}
}

// look judges one node. It returns whether to go on with what is in it.
func (w *walker) look(n ast.Node, stack []ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		w.found(finding{pos: n.Pos(), what: "a goroutine", use: useGo})
		return false
	case *ast.SelectStmt:
		w.found(finding{pos: n.Pos(), what: "select", use: useChannels})
	case *ast.SendStmt:
		w.channel(n, "a send to a channel", stack)
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			w.channel(n, "a receive from a channel", stack)
		}
	case *ast.RangeStmt:
		if t := w.TypesInfo.TypeOf(n.X); t != nil {
			if _, ok := t.Underlying().(*types.Chan); ok {
				w.channel(n, "a range over a channel", stack)
			}
		}
		w.mapRange(n)
	case *ast.AssignStmt:
		for _, lhs := range n.Lhs {
			w.write(lhs)
		}
	case *ast.IncDecStmt:
		w.write(n.X)
	case *ast.ExprStmt:
		w.unused(n)
	case *ast.CallExpr:
		w.call(n, stack)
	case *ast.Ident:
		w.use(n, stack)
	}
	return true
}

// channel finds an operation on a channel, unless it is a case of a select, which is found as well.
func (w *walker) channel(n ast.Node, what string, stack []ast.Node) {
	for _, s := range stack {
		if c, ok := s.(*ast.CommClause); ok && c.Comm != nil && within(n, c.Comm) {
			return
		}
	}
	w.found(finding{pos: n.Pos(), what: what, use: useChannels})
}

// use judges a function or variable that the code names. A function that is named is taken as
// called, unless it is given to what may do what it likes.
func (w *walker) use(id *ast.Ident, stack []ast.Node) {
	obj := w.TypesInfo.Uses[id]
	fn, isFunc := obj.(*types.Func)
	if isFunc {
		fn = fn.Origin()
		obj = fn
	} else if _, ok := obj.(*types.Var); !ok {
		return
	}
	if obj.Pkg() == nil || w.isGiven(id, stack) {
		return
	}
	what := obj.Pkg().Name() + "." + nameOf(obj)
	if use := listed(obj); use != "" {
		w.found(finding{pos: id.Pos(), what: what, use: use})
		return
	}
	switch {
	case !isFunc:
	case obj.Pkg().Path() == "sync" && locks[nameOf(obj)]:
		if w.as == working {
			w.found(finding{pos: id.Pos(), what: what, use: noLock})
		}
	case w.isSilent(id.Pos()):
	case w.as == helping:
		w.helper.calls = append(w.helper.calls, fn)
	default:
		if u := w.unfitness(fn); u != nil {
			w.Reportf(id.Pos(), "%s reaches %s (%s): %s", nameOf(fn), u.What, u.At, u.Use)
		}
	}
}

// call judges calls for more than for what they call.
func (w *walker) call(call *ast.CallExpr, stack []ast.Node) {
	switch callee := typeutil.Callee(w.TypesInfo, call).(type) {
	case *types.Builtin:
		switch callee.Name() {
		case "delete", "clear", "copy":
			w.write(call.Args[0])
		case "recover":
			if w.as == working && !w.panics(around(stack, w.body)) {
				w.found(finding{pos: call.Pos(), what: "recover", use: noRecover})
			}
		}
	case *types.Func:
		switch pkg := callee.Pkg(); {
		case pkg == nil:
		case pkg.Path() == "sync/atomic", pkg.Path() == "sync":
			w.shared(call, callee)
		case pkg.Path() == workflowPath && callee.Name() == "WaitFor":
			w.condition(call)
		case isKeys(callee):
			w.keys(call, stack)
		}
	}
}

// panics tells whether a function panics itself: one that recovers goes on with what it found then.
func (w *walker) panics(body ast.Node) (yes bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			b, ok := typeutil.Callee(w.TypesInfo, call).(*types.Builtin)
			yes = yes || ok && b.Name() == "panic"
		}
		return true
	})
	return yes
}

// condition judges the function of WaitFor.
func (w *walker) condition(call *ast.CallExpr) {
	lit, ok := ast.Unparen(call.Args[len(call.Args)-1]).(*ast.FuncLit)
	if !ok || w.as != working {
		return
	}
	if ask := w.asks(lit.Body); ask != nil {
		w.found(finding{pos: ask.Pos(), what: "a condition that asks for something", use: readOnly})
	}
}

// unused finds results that nobody looks at.
func (w *walker) unused(n *ast.ExprStmt) {
	call, ok := ast.Unparen(n.X).(*ast.CallExpr)
	if !ok || w.as != working {
		return
	}
	fn, _ := typeutil.Callee(w.TypesInfo, call).(*types.Func)
	if fn == nil || fn.Pkg() == nil || fn.Pkg().Path() != workflowPath {
		return
	}
	what := fmt.Sprintf("workflow.%s whose result is not used", fn.Name())
	switch nameOf(fn) {
	case "Start", "Go", "Timer":
		w.found(finding{pos: n.Pos(), what: what, use: keepFuture})
	case "ContinueAsNew":
		w.found(finding{pos: n.Pos(), what: what, use: returnIt})
	}
}

// write finds a write to a variable of a package.
func (w *walker) write(target ast.Expr) {
	if v := w.global(target); v != nil {
		w.found(finding{
			pos: target.Pos(), what: "a write to " + v.Name() + ", a variable of the package",
			use: noGlobals, local: true,
		})
	}
}

// shared finds what package sync or sync/atomic writes to a variable of a package.
func (w *walker) shared(call *ast.CallExpr, fn *types.Func) {
	switch fn.Name() {
	case "Load", "LoadInt32", "LoadInt64", "LoadUint32", "LoadUint64", "LoadPointer", "LoadUintptr",
		"Range", "Lock", "Unlock", "RLock", "RUnlock", "Do", "Wait", "Get", "Put":
		return
	}
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && fn.Signature().Recv() != nil {
		w.write(sel.X)
	} else if len(call.Args) > 0 {
		if addr, ok := ast.Unparen(call.Args[0]).(*ast.UnaryExpr); ok && addr.Op == token.AND {
			w.write(addr.X)
		}
	}
}

// global returns the variable of a package to which an expression belongs, if it does.
func (w *walker) global(e ast.Expr) types.Object {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			if v := w.variableOfPackage(x.Sel); v != nil {
				return v
			}
			e = x.X
		case *ast.Ident:
			return w.variableOfPackage(x)
		default:
			return nil
		}
	}
}

func (w *walker) variableOfPackage(id *ast.Ident) types.Object {
	v, ok := w.TypesInfo.Uses[id].(*types.Var)
	if !ok || v.Pkg() == nil || v.Parent() != v.Pkg().Scope() {
		return nil
	}
	return v
}

// takesAnything tells whether the functions that a call gets may do what they like.
func (w *walker) takesAnything(call *ast.CallExpr) bool {
	fn, _ := typeutil.Callee(w.TypesInfo, call).(*types.Func)
	return fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == workflowPath &&
		(fn.Name() == "Do" || fn.Name() == "Once")
}

// isGiven tells whether a node is, or is in, a function that may do what it likes: an argument of
// workflow.Do, or a variable that is one.
func (w *walker) isGiven(n ast.Node, stack []ast.Node) bool {
	for _, s := range stack {
		call, ok := s.(*ast.CallExpr)
		if !ok || !w.takesAnything(call) {
			continue
		}
		for _, arg := range call.Args {
			_, isCall := ast.Unparen(arg).(*ast.CallExpr)
			_, isFunc := types.Unalias(w.TypesInfo.TypeOf(arg)).Underlying().(*types.Signature)
			if within(n, arg) && isFunc && !isCall {
				return true
			}
		}
	}
	if len(stack) == 0 {
		return false
	}
	switch s := stack[len(stack)-1].(type) {
	case *ast.AssignStmt:
		for i, rhs := range s.Rhs {
			if id, ok := s.Lhs[i].(*ast.Ident); ok && rhs == n {
				return w.given[w.TypesInfo.ObjectOf(id)]
			}
		}
	case *ast.ValueSpec:
		for i, v := range s.Values {
			if v == n {
				return w.given[w.TypesInfo.Defs[s.Names[i]]]
			}
		}
	}
	return false
}

// within tells whether a node is in another one.
func within(n, in ast.Node) bool { return in.Pos() <= n.Pos() && n.End() <= in.End() }

// around is the function that is around a node.
func around(stack []ast.Node, body ast.Node) ast.Node {
	for i := len(stack) - 1; i >= 0; i-- {
		if lit, ok := stack[i].(*ast.FuncLit); ok {
			return lit
		}
	}
	return body
}

// takesContext tells whether a function is workflow code: it has a workflow.Context as a parameter,
// or in its receiver.
func takesContext(sig *types.Signature) bool {
	for v := range sig.Params().Variables() {
		if isType(v.Type(), workflowPath, "Context") {
			return true
		}
	}
	if sig.Recv() == nil {
		return false
	}
	t := types.Unalias(sig.Recv().Type())
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if s, ok := t.Underlying().(*types.Struct); ok {
		for f := range s.Fields() {
			if isType(f.Type(), workflowPath, "Context") {
				return true
			}
		}
	}
	return false
}

// takesNative tells whether a function has a context.Context, which no workflow can give it.
func takesNative(sig *types.Signature) bool {
	for v := range sig.Params().Variables() {
		if isType(v.Type(), "context", "Context") {
			return true
		}
	}
	return false
}

func isType(t types.Type, path, name string) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == path && n.Obj().Name() == name
}
