package graph

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Lengths in pixels.
const (
	margin   = 20
	inset    = 16 // of a group within the one around it
	gap      = 18 // between boxes, room for an arrow
	padding  = 10
	row      = 16 // height of a line
	glyph    = 7  // a generous width of a letter
	laneStep = 12 // between the lines of jumps
	least    = 160
)

const style = `
  text { font-family: Helvetica, Arial, sans-serif; fill: #1f2933; font-size: 12px }
  .title { font-weight: bold }
  .note { font-size: 11px; fill: #52606d }
  .step { fill: #ffffff; stroke: #1f2933; stroke-width: 1.3 }
  .block { fill: #f5f7fa; stroke: #9aa5b1 }
  .workflow { fill: #dceefb; stroke: #0b69a3 }
  .handler { fill: #fdeeee; stroke: #ba2525; stroke-dasharray: 4 3 }
  .next { fill: none; stroke: #3e4c59; stroke-width: 1.3 }
  .jump { fill: none; stroke: #8719e0; stroke-width: 1.3 }
  .loop { fill: none; stroke: #0b69a3; stroke-width: 1.3 }
`

// box is a node with its place.
type box struct {
	*Node
	x, y, w, h int // with all that is below
	head       int // height of its own lines
	below      []*box
}

// picture collects the elements: those of boxes first, so that arrows lie over them.
type picture struct {
	boxes, arrows strings.Builder
	byRef         map[string]*box
	jumps         []*box
	lanes         int
	right         int // where the lanes begin
}

// SVG draws the graph: a box for each step, one in the other, with arrows in the order of running
// and lines at the right for jumps.
func (n *Node) SVG() string {
	root := measure(n)
	root.place(margin, margin)
	p := &picture{byRef: map[string]*box{}, right: root.x + root.w}
	p.paint(root)
	for _, from := range p.jumps {
		p.jump(from)
	}
	w, h := p.right+margin+p.lanes*laneStep, root.y+root.h+margin
	return fmt.Sprintf(
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d">
<style>%[3]s</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" `+
			`orient="auto-start-reverse"><path d="M0 0 L8 4 L0 8 z" fill="context-stroke"/></marker></defs>
<rect width="%[1]d" height="%[2]d" fill="#ffffff"/>
%[4]s%[5]s</svg>
`, w, h, style, p.boxes.String(), p.arrows.String())
}

// title is the first line of a box.
func (n *Node) title() string {
	s := n.Label
	if n.ID != "" {
		s = "[" + n.ID + "] " + s
	}
	if n.Jump != "" {
		s += " → " + n.Jump
	}
	return s
}

// measure gives a node its size, from the inside out.
func measure(n *Node) *box {
	b := &box{Node: n, w: least, head: padding + row + row*len(n.Notes) + padding/2}
	for _, s := range append([]string{n.title()}, n.Notes...) {
		b.w = max(b.w, 2*padding+glyph*utf8.RuneCountInString(s))
	}
	b.h = b.head
	for i, child := range n.Below {
		c := measure(child)
		if i > 0 {
			b.h += gap
		}
		b.h += c.h
		b.w = max(b.w, c.w+2*inset)
		b.below = append(b.below, c)
	}
	if len(b.below) > 0 {
		b.h += inset
	}
	return b
}

// place puts a box and what is in it, from the outside in.
func (b *box) place(x, y int) {
	b.x, b.y = x, y
	at := y + b.head
	for _, c := range b.below {
		c.place(x+inset, at)
		at += c.h + gap
	}
}

func (b *box) class() string {
	switch {
	case b.Kind == Handler:
		return "handler"
	case b.Kind == Workflow:
		return "workflow"
	case len(b.below) > 0:
		return "block"
	}
	return "step"
}

func (p *picture) paint(b *box) {
	fmt.Fprintf(&p.boxes,
		"<rect class=%q x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\"/>\n",
		b.class(), b.x, b.y, b.w, b.h)
	p.text("title", b.x+padding, b.y+padding+row-5, b.title())
	for i, note := range b.Notes {
		p.text("note", b.x+padding, b.y+padding+row*(i+2)-5, note)
	}
	if b.Ref != "" {
		p.byRef[b.Ref] = b
	}
	if b.Target != "" {
		p.jumps = append(p.jumps, b)
	}
	for i, c := range b.below {
		p.paint(c)
		if i > 0 && c.Kind != Handler && b.below[i-1].goesOn() && b.Type != "switch" {
			x := c.x + least/2
			p.line("next", point{x, b.below[i-1].y + b.below[i-1].h}, point{x, c.y})
		}
	}
	if first, last := b.looped(); b.Loop && last != nil {
		x, from, to := b.x+inset/2, last.y+last.h-padding, first.y+padding
		p.line("loop", point{last.x, from}, point{x, from}, point{x, to}, point{first.x, to})
	}
}

// looped are the first and the last step below that are no handlers, nil if there are none.
func (b *box) looped() (first, last *box) {
	for _, c := range b.below {
		if c.Kind != Handler {
			first, last = cmp.Or(first, c), c
		}
	}
	return first, last
}

// goesOn tells whether the step below follows. It does not after a jump, unless that is under a
// condition.
func (b *box) goesOn() bool {
	return b.optional || b.Jump == "" && b.Type != "return" && b.Type != "fail"
}

type point struct{ x, y int }

func (p *picture) line(class string, path ...point) {
	points := make([]string, len(path))
	for i, at := range path {
		points[i] = fmt.Sprintf("%d,%d", at.x, at.y)
	}
	fmt.Fprintf(&p.arrows, "<polyline class=%q points=\"%s\" marker-end=\"url(#head)\"/>\n",
		class, strings.Join(points, " "))
}

// jump draws a line around everything, each in a lane of its own.
func (p *picture) jump(from *box) {
	to := p.byRef[from.Target]
	if to == nil {
		return
	}
	p.lanes++
	x := p.right + p.lanes*laneStep
	out, in := from.y+from.head/2, to.y+to.head/2
	if from == to {
		out += padding / 2
	}
	p.line("jump", point{from.x + from.w, out}, point{x, out}, point{x, in}, point{to.x + to.w, in})
}

func (p *picture) text(class string, x, y int, text string) {
	fmt.Fprintf(&p.boxes, "<text class=%q x=\"%d\" y=\"%d\">", class, x, y)
	_ = xml.EscapeText(&p.boxes, []byte(text)) // a strings.Builder takes everything
	p.boxes.WriteString("</text>\n")
}
