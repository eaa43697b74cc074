package graph

import "strings"

// Text draws the graph as a tree, one line for each node.
func (n *Node) Text() string {
	var b strings.Builder
	b.WriteString(n.words() + "\n")
	n.branches(&b, "")
	return b.String()
}

func (n *Node) branches(b *strings.Builder, indent string) {
	for i, child := range n.Below {
		fork, next := "├─ ", "│  "
		if i == len(n.Below)-1 {
			fork, next = "└─ ", "   "
		}
		b.WriteString(indent + fork + child.words() + "\n")
		child.branches(b, indent+next)
	}
}

func (n *Node) words() string {
	s := n.title()
	if len(n.Notes) > 0 {
		s += "  (" + strings.Join(n.Notes, "; ") + ")"
	}
	return s
}
