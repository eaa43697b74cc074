package machine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/droverhq/drover/decider/flow/backoff"
	"github.com/droverhq/drover/decider/flow/concurrency"
	"github.com/droverhq/drover/decider/flow/condition"
	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/decider/flow/value"
)

// Flow is a definition whose expressions have been read. It is immutable and may be shared.
type Flow struct {
	definition *model.Definition
	programs   map[string]*Program
}

// Program is one definition that is a run's own.
type Program struct {
	flow     *Flow
	key      string
	def      *model.Definition
	steps    map[string]*step
	body     *list
	handlers *list
	cond     *condition.Condition
	output   *expr.Expr
	inputs   map[string]*expr.Expr
	timeout  *expr.Expr
	lock     *lock
	signals  map[string]bool // that steps wait for; nil if that is not known before
}

type lock struct {
	name, scope *expr.Expr
	limit       int
}

// list is a list of steps.
type list struct {
	kind  run.ListKind
	owner *step // nil for those of the run
	steps []*step
	ids   map[string]int
}

// step is a step with its expressions.
type step struct {
	*model.Step
	list     *list
	index    int
	name     *expr.Expr // nil if it is as it is written
	inputs   map[string]*expr.Expr
	cond     *condition.Condition
	output   *expr.Expr
	next     *expr.Expr
	timeout  *expr.Expr
	handlers *list
	block    *list
	cases    *list
	child    string // key of the program of each nested run
	target   *expr.Expr
	width    *expr.Expr // concurrency
	reducing *expr.Expr
	each     *condition.Condition // judged for each target
	chain    *expr.Chain
	pipe     *expr.Pipeline
	variable value.Path
	status   *condition.Condition
	part     *statePart           // of set-state and clear-state, if they change a part of a key
	require  *condition.Condition // of that part
}

// Compile reads the expressions of a definition. What this engine cannot do is an error here, with
// its place.
func Compile(d *model.Definition) (*Flow, error) {
	f := &Flow{definition: d, programs: map[string]*Program{}}
	if err := f.compile("", "", d); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(d.Types)) {
		if err := f.compile(typeKey(name), typeKey(name), d.Types[name]); err != nil {
			return nil, fmt.Errorf("step type %s: %w", name, err)
		}
	}
	f.alias()
	return f, nil
}

// alias lets runs go on that were begun before the keys of parts of types had a slash, where such a
// key means nothing else.
func (f *Flow) alias() {
	for _, key := range slices.Sorted(maps.Keys(f.programs)) {
		old := strings.Replace(key, "/", "", 1)
		if _, taken := f.programs[old]; taken {
			continue
		}
		p := *f.programs[key]
		p.key = old
		f.programs[old] = &p
	}
}

func typeKey(name string) string { return "type:" + name }

// Program returns the program of a key that an action of this flow named; the empty key is the
// root.
func (f *Flow) Program(key string) (*Program, error) {
	p := f.programs[key]
	if p == nil {
		return nil, fmt.Errorf("the flow has no part %q: %s", key, otherVersion)
	}
	return p, nil
}

// compile reads a definition and those within it. prefix tells those within registered types from
// those of the root.
func (f *Flow) compile(key, prefix string, d *model.Definition) error {
	p := &Program{flow: f, key: key, def: d, steps: map[string]*step{}, signals: map[string]bool{}}
	f.programs[key] = p
	c := &compiler{p: p, prefix: prefix}
	p.body = c.list(run.Steps, nil, d.Steps)
	p.handlers = c.list(run.OfWorkflow, nil, d.OnError)
	at := "definition"
	if key == "" || strings.HasPrefix(key, "type:") && key == prefix {
		p.cond = c.condition(at, d.Condition)
		p.inputs = c.all(at, d.Input)
	}
	if d.Output != nil {
		p.output = c.full(at, d.Output)
	}
	if d.Timeout != "" {
		p.timeout = c.full(at, d.Timeout)
	}
	if l := d.Lock; l != nil {
		p.lock = &lock{name: c.full(at, l.Name), limit: l.Limit}
		if l.Scope != "" {
			p.lock.scope = c.full(at, l.Scope)
		}
	}
	return errors.Join(c.errs...)
}

// Key names the program in its flow; empty for the root.
func (p *Program) Key() string { return p.key }

// Step returns a step by its ref; nil if the program has none.
func (p *Program) Step(ref string) *model.Step {
	if st := p.steps[ref]; st != nil {
		return st.Step
	}
	return nil
}

// given says how a name gets into the runs of a workflow or foreach step, which see nothing of what
// stands around them; "" for other programs.
func (p *Program) given(name string) string {
	if p.key == "" || strings.HasPrefix(p.key, "type:") && !strings.Contains(p.key, "/") {
		return ""
	}
	return fmt.Sprintf(
		"workflow and foreach have names of their own: give them what stands around by input: {%s: \"${%s}\"}",
		name, name)
}

// IsWork tells whether the action of an id is an activity or a child, and no request on a state
// key.
func (p *Program) IsWork(id string) bool {
	ref, rest, _ := strings.Cut(id, "#")
	st := p.steps[ref]
	return st != nil && st.Type != "set-state" && st.Type != "clear-state" &&
		!strings.Contains(rest, "?")
}

// compiler reads one program and collects what is wrong.
type compiler struct {
	p      *Program
	prefix string
	errs   []error
}

func (c *compiler) fail(at string, err error) {
	if err != nil && len(c.errs) < 20 {
		c.errs = append(c.errs, fmt.Errorf("%s: %w", at, err))
	}
}

func where(s *model.Step) string {
	return fmt.Sprintf("line %d: step %s (%s)", s.Pos.Line, s.Ref, s.Type)
}

func (c *compiler) list(kind run.ListKind, owner *step, steps []*model.Step) *list {
	l := &list{kind: kind, owner: owner, ids: map[string]int{}}
	for i, m := range steps {
		s := &step{Step: m, list: l, index: i}
		l.steps = append(l.steps, s)
		if m.ID != "" {
			l.ids[m.ID] = i
		}
		c.p.steps[m.Ref] = s
		c.step(s)
	}
	return l
}

func (c *compiler) step(s *step) {
	at := where(s.Step)
	s.cond = c.condition(at+": condition", s.Condition)
	s.handlers = c.list(run.OfStep, s, s.OnError)
	if strings.Contains(s.Name, "${") {
		// with Ignore nothing is an error
		s.name, _ = expr.ParseValue(s.Name, expr.Options{Mode: expr.Full, OnError: expr.Ignore})
	}
	if s.Output != nil {
		s.output = c.full(at+": output", s.Output)
	}
	if s.Next != "" {
		s.next = c.full(at+": next", s.Next)
	}
	if s.Timeout != "" {
		s.timeout = c.full(at+": timeout", s.Timeout)
	}
	switch {
	case s.Nested != nil:
		c.nested(s, at)
		return
	case c.p.flow.definition.Types[s.Type] != nil:
		s.child = typeKey(s.Type)
	case s.Then != nil:
		s.block = c.list(run.Then, s, []*model.Step{s.Then})
	case s.Block != nil:
		s.block = c.list(run.Block, s, s.Block)
	case s.Cases != nil:
		s.cases = c.list(run.Case, s, s.Cases)
	}
	s.inputs = c.all(at, s.Inputs)
	c.special(s, at)
}

func (c *compiler) nested(s *step, at string) {
	if s.child = s.Ref; c.prefix != "" {
		// no name of a type has one: deploy2 is another than step 2 of deploy
		s.child = c.prefix + "/" + s.Ref
	}
	s.inputs = c.all(at, s.Nested.Input)
	if err := c.p.flow.compile(s.child, c.prefix, s.Nested); err != nil {
		c.errs = append(c.errs, err)
	}
	if s.Loop == nil {
		return
	}
	s.each = c.condition(at+": condition", s.Nested.Condition)
	s.target = c.full(at+": target", s.Loop.Target)
	if w := s.Loop.Concurrency; w != "" {
		s.width = c.full(at+": concurrency", w)
		if !strings.Contains(w, "${") {
			_, err := concurrency.Parse(w)
			c.fail(at+": concurrency", err)
		}
	}
	if s.Loop.Reducing != nil {
		s.reducing = c.full(at+": reducing", s.Loop.Reducing)
	}
}

// special reads the inputs that have a language of their own, and refuses what this engine does not
// do.
func (c *compiler) special(s *step, at string) {
	if name, ok := s.Inputs["variable"].(string); ok {
		path, err := value.ParsePath(name)
		c.fail(at+": variable", err)
		s.variable = path
	}
	switch s.Type {
	case "let":
		s.inputs["value"] = c.let(s, at)
	case "transform":
		c.transform(s, at)
	case "if":
		for _, name := range []string{"target", "equals"} {
			if v, ok := s.Inputs[name]; ok {
				x, err := operand(v)
				c.fail(at+": "+name, err)
				s.inputs[name] = x
			}
		}
	case "http", "ssh", "shell", "container":
		c.statusOf(s, at)
	case "wait":
		if s.Inputs["task"] != nil {
			c.fail(at, errors.New(
				"wait task is not there: an activity step waits for its activity by itself"))
		}
	case "wait-for-signal":
		c.waitsFor(s.Inputs["signal"])
	case "approve":
		if name := s.Inputs["signal"]; name == nil || name == "" {
			c.waitsFor(approval)
		} else {
			c.waitsFor(name)
		}
	case "set-state", "clear-state":
		c.state(s, at)
	case "retry":
		c.limits(s, at)
	}
}

// operand reads what an if compares: an expression, as in a let. The line has taken the quotes off
// what was one word, so a text of which no expression can be made, as "" and "+", stands for
// itself.
func operand(v any) (*expr.Expr, error) {
	if text, ok := v.(string); ok && strings.Trim(text, " \t\r\n+-*/%!=<>&|?:()") == "" {
		return expr.ParseValue(v, expr.Options{Mode: expr.Disabled})
	}
	return expr.ParseValue(v, expr.Options{})
}

func (c *compiler) waitsFor(name any) {
	text, _ := value.Text(name)
	switch {
	case text == "":
	case strings.Contains(text, "${"):
		c.p.signals = nil
	case c.p.signals != nil:
		c.p.signals[text] = true
	}
}

func (c *compiler) state(s *step, at string) {
	var err error
	key, _ := s.Inputs["key"].(string)
	s.part, err = parsePart(key)
	c.fail(at+": key", err)
	if s.Inputs["require"] != nil {
		s.require, err = condition.Parse(s.Inputs["require"])
		c.fail(at+": require", err)
	}
}

func (c *compiler) limits(s *step, at string) {
	for _, text := range texts(s.Inputs["limit"]) {
		if !strings.Contains(text, "${") {
			_, err := backoff.ParseLimit(text)
			c.fail(at+": limit", err)
		}
	}
	for _, text := range texts(s.Inputs["backoff"]) {
		if !strings.Contains(text, "${") {
			_, err := backoff.Parse(text)
			c.fail(at+": backoff", err)
		}
	}
}

// texts are a scalar, or the scalars of a list, as text.
func texts(v any) []string {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, texts(e)...)
		}
		return all
	}
	text, err := value.Text(v)
	if err != nil {
		return nil
	}
	return []string{text}
}

func (c *compiler) let(s *step, at string) *expr.Expr {
	var o expr.Options
	if text, ok := s.Inputs["interpolation_mode"].(string); ok {
		mode, err := expr.ParseMode(text)
		c.fail(at, err)
		o.Mode = mode
	}
	if text, ok := s.Inputs["interpolation_errors"].(string); ok {
		onError, err := expr.ParseOnError(text)
		c.fail(at, err)
		o.OnError = onError
	}
	x, err := expr.ParseValue(s.Inputs["value"], o)
	c.fail(at+": value", err)
	return x
}

func (c *compiler) transform(s *step, at string) {
	var err error
	if list := texts(s.Inputs["transform"]); len(list) > 0 {
		s.chain, err = expr.ParseChains(list)
		c.fail(at+": transform", err)
	}
	delete(s.inputs, "transform")
	if s.chain == nil {
		return
	}
	if v, ok := s.Inputs["value"]; ok {
		s.pipe, err = s.chain.From(v, expr.Options{Mode: expr.Full})
	} else if len(s.variable) > 0 {
		s.pipe, err = s.chain.From("${"+s.variable.String()+"}", expr.Options{Mode: expr.Full})
	}
	c.fail(at+": value", err)
	if s.chain.Returns() && s.Inputs["variable"] != nil {
		c.fail(at, errors.New(
			"a transform with return sets no variable: leave the variable out, or return in a step of its own"))
	}
}

// statusOf reads what status_code or exit_code must be.
func (c *compiler) statusOf(s *step, at string) {
	name, want := "exit_code", any(int64(0))
	if s.Type == "http" {
		name, want = "status_code", map[string]any{"in-range": []any{int64(200), int64(399)}}
	}
	if given, ok := s.Inputs[name]; ok {
		want = given
	}
	delete(s.inputs, name)
	if want == "any" {
		want = map[string]any{"when": "always"}
	}
	s.status = c.condition(at+": "+name, want)
}

func (c *compiler) condition(at string, v any) *condition.Condition {
	if v == nil {
		return nil
	}
	cond, err := condition.Parse(v)
	c.fail(at, err)
	return cond
}

func (c *compiler) full(at string, v any) *expr.Expr {
	x, err := expr.ParseValue(v, expr.Options{Mode: expr.Full})
	c.fail(at, err)
	return x
}

func (c *compiler) all(at string, inputs map[string]any) map[string]*expr.Expr {
	all := make(map[string]*expr.Expr, len(inputs))
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		all[name] = c.full(at+": "+name, inputs[name])
	}
	return all
}
