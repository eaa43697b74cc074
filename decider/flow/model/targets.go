package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// target is where a step goes next. It is looked up when all ids are known.
type target struct {
	name    string
	at      Position
	scope   *scope
	handler handling
	retry   bool
}

func (p *parser) target(name string, w words, r *reading) {
	p.targets = append(p.targets,
		target{name, w.at(0), r.at.scope, r.at.handler, r.step.Type == "retry"})
}

func (p *parser) checkTargets() {
	for _, t := range p.targets {
		if t.name == "" || dynamic(t.name) {
			continue
		}
		switch word := strings.ToLower(t.name); {
		case word == "start" || word == "end":
		case word == "last" && t.retry:
		case word == "exit" && t.handler == ofStep:
		case word == "exit" && t.handler == ofWorkflow:
			p.add(t.at, "exit in the handler of a workflow",
				"there is no handler around it to go on with: write end")
		case word == "exit":
			p.add(t.at, "exit outside of a handler",
				"it leaves a handler: write end to end the block")
		case slices.Contains(reserved, word):
			p.add(t.at, quoted(t.name)+" is no place to go to",
				"write an id, start or end; retry also knows last")
		case !t.scope.has(t.name):
			ids := t.scope.all()
			hint := didYouMean(t.name, ids)
			if hint == "" && len(ids) > 0 {
				hint = "the ids are " + strings.Join(ids[:min(len(ids), 20)], ", ")
			}
			p.add(t.at, "there is no step with the id "+quoted(t.name)+" here or in a block around",
				cmp.Or(hint, "give the step an id, or write start or end"))
		}
	}
}

func (s *scope) has(id string) bool {
	for ; s != nil; s = s.outer {
		if _, ok := s.ids[id]; ok {
			return true
		}
	}
	return false
}

func (s *scope) all() []string {
	ids := map[string]Position{}
	for ; s != nil; s = s.outer {
		maps.Copy(ids, s.ids)
	}
	return slices.Sorted(maps.Keys(ids))
}
