package model

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/droverhq/drover/decider/flow/shorthand"
	"github.com/droverhq/drover/internal/duration"
	"github.com/droverhq/drover/internal/retention"
)

// Options say how a text is parsed. The zero value knows no registered types and checks no
// expressions.
type Options struct {
	// StepType is true if the text defines a step type: then it needs an id and may have a
	// shorthand.
	StepType bool
	// Types finds a registered step type by its name. Nil knows none.
	Types func(name string) (*Definition, bool)
	// Checks are for the languages within texts.
	Checks Checks
	// Warn is told of what is allowed but hardly meant. Nil ignores it.
	Warn func(*Error)
}

// Checks say whether a text, or a value, is what its language allows. Nil allows everything.
type Checks struct {
	Text        func(text string) error // with ${...} perhaps
	Let         func(text string) error // the value of a let in words
	Transform   func(text string) error // a chain, or a part of one
	Backoff     func(text string) error // without ${...}
	Limit       func(text string) error // of retry, without ${...}
	Concurrency func(text string) error // without ${...}
	Condition   func(value any) error   // plain data
	Lock        func(text string) error // the name of a lock, or its scope, without ${...}
	// Explain takes an error of the others apart. The offset is that within the text; -1 if it is
	// unknown. Nil takes the error's text.
	Explain func(err error) (offset int, problem, hint string)
	// Place says where in a condition an error is, such as any[0].regex; the offset that Explain
	// gives is within the text there. Nil, and an empty path, is the condition itself.
	Place func(err error) (path string)
}

// Parse reads a definition. The file is for messages only. A root that is a list is taken as its
// steps. Errors are of type Errors.
func Parse(file string, text []byte, o *Options) (*Definition, error) {
	src := strings.TrimPrefix(string(text), "\ufeff")
	shown := src
	if len(shown) > MaxSize {
		shown = "" // no excerpts of what is refused for its size
	}
	p := &parser{
		report: newReport(file, shown), o: *cmp.Or(o, &Options{}), types: map[string]*Definition{},
	}
	root, err := readYAML(src)
	if err != nil {
		f, ok := errors.AsType[*fault](err)
		if !ok {
			f = &fault{at: Position{1, 1}, problem: err.Error()}
		}
		p.add(f.at, f.problem, f.hint)
		return nil, p.err()
	}
	d := p.root(root)
	p.checkTargets()
	if err := p.err(); err != nil {
		return nil, err
	}
	return d, nil
}

type parser struct {
	*report
	o       Options
	types   map[string]*Definition // used so far
	steps   int
	targets []target
	id      string // of the step type that is parsed
}

// spot is where a step, or a definition, stands.
type spot struct {
	scope    *scope
	base     string // of the Refs of steps
	depth    int
	handler  handling
	item     bool // the step is an item of a handler itself, not of a block in one
	disabled bool // the run, or one above it, keeps nothing
	locked   bool // the run has a lock
	judged   bool // the step is a case: its condition judges the value of the switch
}

type handling int

const (
	ofStep     handling = iota + 1 // in the handler of a step
	ofWorkflow                     // in that of a workflow
)

// scope has the ids of a block. A jump out of it looks in the blocks around, up to the workflow.
type scope struct {
	outer *scope
	ids   map[string]Position
}

var (
	definitionKeys = []string{
		"name", "description", "parameters", "input", "output", "condition", "on-error", "timeout",
		"lock", "retention", "replayable",
		"idempotent", "steps", "id", "type", "shorthand",
	}
	misplacedKeys = map[string]string{
		"target": onlyNested, "target_var_name": onlyNested, "target_index_var_name": onlyNested,
		"concurrency": onlyNested, "reducing": onlyNested, "triggers": noTriggers,
		"period": noTriggers, "skip_initial_run": noTriggers, "delay": noTriggers,
		"step": "list the steps under steps", "s": "list the steps under steps",
		"on_error": "write on-error", "next": "it is a key of steps",
		"metadata":              "it is a key of steps",
		"version":               "a definition's version is made from its content",
		"brooklyn.initializers": "give each workflow a file of its own",
	}
)

const (
	onlyNested = "it is a key of steps of type workflow or foreach: put such a step around the steps"
	noTriggers = "start the flow by a signal or a schedule instead"
)

func (p *parser) root(n *node) *Definition {
	at := spot{scope: &scope{ids: map[string]Position{}}}
	switch n.kind {
	case list:
		d := &Definition{Pos: n.pos}
		d.Steps = p.block(n, at)
		return p.complete(d, n)
	case mapping:
		return p.rootMap(n, at)
	}
	p.add(n.pos, "the definition is "+n.is(), "write a map with steps, or a list of steps")
	return nil
}

func (p *parser) rootMap(n *node, at spot) *Definition {
	for _, pair := range n.pairs {
		switch hint, misplaced := misplacedKeys[pair.key]; {
		case misplaced:
			p.add(pair.pos, pair.key+" is no key of a definition", hint)
		case !slices.Contains(definitionKeys, pair.key):
			hint := cmp.Or(didYouMean(pair.key, definitionKeys),
				"the keys are "+strings.Join(definitionKeys, ", "))
			p.add(pair.pos, quoted(pair.key)+" is no key of a definition", hint)
		}
	}
	d := &Definition{Pos: n.pos}
	d.ID = p.word(n.get("id"), "id")
	d.Name = p.line(n.get("name"), "name")
	d.Description = p.line(n.get("description"), "description")
	p.id = d.ID
	if t := n.get("type"); t != nil && t.text != "workflow" && t.text != "workflow-effector" {
		p.add(t.pos, "the type of a definition is "+t.says(),
			"write workflow, or leave type out; sensors and policies are started by signals or schedules")
	}
	p.parameters(d, n.get("parameters"))
	p.shorthand(d, n.get("shorthand"))
	if p.o.StepType {
		p.checkTypeID(d, n)
		p.reachable(d, n)
	}
	p.workflow(d, n, at)
	return p.complete(d, n)
}

func (p *parser) checkTypeID(d *Definition, n *node) {
	switch _, builtin := names[d.ID]; {
	case d.ID == "" && n.get("id") == nil:
		p.add(n.pos, "the step type has no id",
			"the id is the word that authors write, for example id: apt-get")
	case builtin:
		p.add(n.get("id").pos, d.ID+" is a step type already", "choose another id")
	}
}

// reachable complains of parameters that nobody can give: their names are keys of every step.
func (p *parser) reachable(d *Definition, n *node) {
	under := n.get("parameters")
	if under == nil {
		return
	}
	inLine := map[string]bool{}
	if t, err := shorthand.Parse(d.Shorthand); err == nil {
		for _, v := range t.Variables() {
			v, _, _ = strings.Cut(v, ".")
			inLine[v] = true
		}
	}
	for _, pair := range under.pairs {
		if _, structural := structural[pair.key]; (structural ||
			slices.Contains(stepKeys, pair.key)) && !inLine[pair.key] {
			p.add(pair.pos, "the parameter "+pair.key+" has the name of a key of steps",
				"choose another name, or name it in the shorthand")
		}
	}
}

// workflow reads what roots and nested definitions have in common, from the keys of n.
func (p *parser) workflow(d *Definition, n *node, at spot) {
	d.Input = p.dict(n.get("input"), "input")
	d.Output = p.data(n.get("output"), "output")
	d.Timeout = p.length(n.get("timeout"), "timeout")
	d.Lock = p.lock(n.get("lock"))
	d.Retention = p.retention(n.get("retention"))
	if v := n.get("replayable"); v != nil {
		d.Replayable = p.replayable(v)
	}
	if v := n.get("idempotent"); v != nil && v.kind != null {
		if d.IdempotentAll = v.text == "all"; !d.IdempotentAll &&
			(v.text != "" || v.kind == list || v.kind == mapping) {
			p.add(v.pos, "idempotent of a workflow is "+v.says(),
				"write all, or leave it out; yes and no are for steps")
		}
	}
	p.nested(d, n, at)
}

// nested reads steps and handlers; what holds for all of them is known by now.
func (p *parser) nested(d *Definition, n *node, at spot) {
	at.disabled = at.disabled || d.Retention != nil && d.Retention.Disabled
	at.locked = d.Lock != nil
	if at.locked && at.disabled {
		where := cmp.Or(n.get("lock"), n)
		p.add(where.pos, "a workflow with a lock has retention disabled, or one around it has",
			"after a crash nobody would free the lock: write retention: 0 instead")
	}
	if v := n.get("condition"); v != nil {
		// else that of a flow, which judges nothing; a step has judged its own, or has a loop
		d.Condition = p.condition(v, at.depth > 0)
	}
	if v := n.get("steps"); v != nil {
		in := at
		in.base = stepsBase(at.base)
		d.Steps = p.block(v, in)
	} else if d.Output == nil {
		p.add(n.pos, "the workflow has neither steps nor output", "list what it does under steps")
	}
	if v := n.get("on-error"); v != nil {
		at.handler = ofWorkflow
		at.base += "on-error."
		d.OnError = p.handlers(v, at)
	}
}

// stepsBase begins the Refs of a definition's steps. Those of a root are bare indices.
func stepsBase(base string) string {
	if base == "" {
		return ""
	}
	return base + "steps."
}

// complete gives the root the types that it uses.
func (p *parser) complete(d *Definition, n *node) *Definition {
	if p.id != "" {
		if _, ok := p.types[p.id]; ok {
			p.add(n.pos, "the step type "+p.id+" comes to use itself",
				"a recursion needs runs of their own: use child")
		}
	}
	if len(p.types) > 0 {
		d.Types = p.types
	}
	return d
}

// lookup finds a registered type and takes it, with those that it uses, into the definition.
func (p *parser) lookup(name string, at Position) *Definition {
	if d, ok := p.types[name]; ok {
		return d
	}
	if p.o.Types == nil {
		return nil
	}
	found, ok := p.o.Types(name)
	if !ok || found == nil {
		return nil
	}
	own := *found
	own.Types = nil
	for _, used := range slices.Sorted(maps.Keys(found.Types)) {
		p.adopt(used, found.Types[used], at)
	}
	p.adopt(name, &own, at)
	return &own
}

func (p *parser) adopt(name string, d *Definition, at Position) {
	if d == nil {
		return
	}
	if have, ok := p.types[name]; ok && have.Version() != d.Version() {
		p.add(at, "the step type "+name+" is used in two versions",
			"register anew the types that use it")
	}
	p.types[name] = d
}

// explain adds the error of a check about a text.
func (p *parser) explain(w words, err error) {
	if err == nil {
		return
	}
	if e, ok := errors.AsType[*duration.Error](err); ok {
		p.add(w.at(e.Offset), "the duration "+quoted(w.s)+": "+e.Problem, e.Hint)
		return
	}
	if e, ok := errors.AsType[*retention.Error](err); ok {
		p.add(w.at(e.Offset), "the retention "+quoted(w.s)+": "+e.Problem, e.Hint)
		return
	}
	offset, problem, hint := -1, err.Error(), ""
	if p.o.Checks.Explain != nil {
		offset, problem, hint = p.o.Checks.Explain(err)
	}
	p.add(w.at(offset), problem, hint)
}
