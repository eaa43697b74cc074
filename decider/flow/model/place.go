package model

import (
	"strconv"
	"strings"
)

// explainTree is explain for the check of a tree, whose error may say where in it.
func (p *parser) explainTree(n *node, err error) {
	w := words{s: n.text, n: n, off: -1}
	if err != nil && p.o.Checks.Place != nil {
		w = n.inner(p.o.Checks.Place(err)).words()
	}
	p.explain(w, err)
}

// inner follows a path such as any[0].regex as far as it goes.
func (n *node) inner(path string) *node {
	for part := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '.' || c == '[' || c == ']' }) {
		next := n.get(part)
		if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(n.items) {
			next = n.items[i]
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}
