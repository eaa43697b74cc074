package main

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

type point struct{ x, y int }

type rect struct{ x, y, w, h int }

// canvas collects the picture.
type canvas struct {
	w, h   int
	shapes map[string]rect
	body   strings.Builder
}

const (
	lineHeight = 16
	style      = `
  text { font-family: Helvetica, Arial, sans-serif; fill: #1f2933; text-anchor: middle; font-size: 12px }
  .title { font-weight: bold; font-size: 13px }
  .label { font-size: 11px; fill: #3e4c59; stroke: #ffffff; stroke-width: 4px; paint-order: stroke }
  .group { fill: #f5f7fa; stroke: #cbd2d9; stroke-dasharray: 4 3 }
  .corner { text-anchor: start; font-size: 12px; fill: #616e7c }
  .box { fill: #ffffff; stroke: #1f2933; stroke-width: 1.3 }
  .store { fill: #dceefb; stroke: #0b69a3; stroke-width: 1.3 }
  .arrow { fill: none; stroke: #3e4c59; stroke-width: 1.3 }
`
)

// paint adds what one line describes.
func (c *canvas) paint(words []string) error {
	kind, words := words[0], words[1:]
	switch kind {
	case "size":
		n, err := numbers(words, 2)
		if err == nil {
			c.w, c.h = n[0], n[1]
		}
		return err
	case "group", "box", "store":
		return c.shape(kind, words)
	case "arrow", "both":
		return c.arrow(kind == "both", words)
	}
	return fmt.Errorf("%q: want size, group, box, store, arrow or both", kind)
}

func (c *canvas) shape(kind string, words []string) error {
	if len(words) < 6 {
		return fmt.Errorf("%s: want NAME X Y WIDTH HEIGHT and a title", kind)
	}
	name, texts := words[0], words[5:]
	n, err := numbers(words[1:5], 4)
	if err != nil {
		return err
	}
	if _, ok := c.shapes[name]; ok {
		return fmt.Errorf("%q is drawn already: choose another name", name)
	}
	r := rect{n[0], n[1], n[2], n[3]}
	c.shapes[name] = r
	round := map[string]int{"group": 8, "box": 4, "store": 14}[kind]
	fmt.Fprintf(&c.body,
		"<rect class=%q x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\"/>\n",
		kind, r.x, r.y, r.w, r.h, round)
	if kind == "group" {
		c.text("corner", r.x+10, r.y+18, texts[0])
		return nil
	}
	y := r.y + r.h/2 - (len(texts)-1)*lineHeight/2 + 4
	for i, text := range texts {
		class := "line"
		if i == 0 {
			class = "title"
		}
		c.text(class, r.x+r.w/2, y+i*lineHeight, text)
	}
	return nil
}

func (c *canvas) arrow(both bool, words []string) error {
	if len(words) < 3 {
		return fmt.Errorf("arrow: want FROM.SIDE TO.SIDE and a label")
	}
	from, err := c.anchor(words[0])
	if err != nil {
		return err
	}
	to, err := c.anchor(words[1])
	if err != nil {
		return err
	}
	path := []point{from}
	for _, word := range words[3:] {
		n, err := numbers(strings.Split(word, ","), 2)
		if err != nil {
			return err
		}
		path = append(path, point{n[0], n[1]})
	}
	path = append(path, to)
	var points []string
	for _, p := range path {
		points = append(points, fmt.Sprintf("%d,%d", p.x, p.y))
	}
	begin := ""
	if both {
		begin = ` marker-start="url(#head)"`
	}
	fmt.Fprintf(&c.body, "<polyline class=\"arrow\" points=\"%s\"%s marker-end=\"url(#head)\"/>\n",
		strings.Join(points, " "), begin)
	if words[2] != "" {
		at := middle(path)
		c.text("label", at.x, at.y-4, words[2])
	}
	return nil
}

// middle is the middle of the longest part of a path.
func middle(path []point) point {
	var at point
	longest := -1
	for i := 1; i < len(path); i++ {
		a, b := path[i-1], path[i]
		if length := abs(a.x-b.x) + abs(a.y-b.y); length > longest {
			longest, at = length, point{(a.x + b.x) / 2, (a.y + b.y) / 2}
		}
	}
	return at
}

func abs(n int) int { return max(n, -n) }

// anchor finds a place on the border of a shape: NAME.SIDE, with percent after it.
func (c *canvas) anchor(where string) (point, error) {
	name, side, ok := strings.Cut(where, ".")
	r, known := c.shapes[name]
	if !ok || !known || side == "" {
		return point{}, fmt.Errorf("%q: want NAME.SIDE of a shape that is drawn already", where)
	}
	percent := 50
	if side[1:] != "" {
		n, err := strconv.Atoi(side[1:])
		if err != nil || n < 0 || n > 100 {
			return point{}, fmt.Errorf("%q: want a side with 0 to 100 after it", where)
		}
		percent = n
	}
	switch side[0] {
	case 't':
		return point{r.x + r.w*percent/100, r.y}, nil
	case 'b':
		return point{r.x + r.w*percent/100, r.y + r.h}, nil
	case 'l':
		return point{r.x, r.y + r.h*percent/100}, nil
	case 'r':
		return point{r.x + r.w, r.y + r.h*percent/100}, nil
	}
	return point{}, fmt.Errorf("%q: the side is t, b, l or r", where)
}

func (c *canvas) text(class string, x, y int, text string) {
	fmt.Fprintf(&c.body, "<text class=%q x=\"%d\" y=\"%d\">", class, x, y)
	_ = xml.EscapeText(&c.body, []byte(text)) // a strings.Builder takes everything
	c.body.WriteString("</text>\n")
}

func (c *canvas) svg() (string, error) {
	if c.w <= 0 || c.h <= 0 {
		return "", fmt.Errorf("the size is missing: want a line \"size WIDTH HEIGHT\"")
	}
	return fmt.Sprintf(
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d">
<style>%[3]s</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" `+
			`orient="auto-start-reverse"><path d="M0 0 L8 4 L0 8 z" fill="#3e4c59"/></marker></defs>
<rect width="%[1]d" height="%[2]d" fill="#ffffff"/>
%[4]s</svg>
`, c.w, c.h, style, c.body.String()), nil
}

func numbers(words []string, want int) ([]int, error) {
	if len(words) != want {
		return nil, fmt.Errorf("%q: want %d numbers", words, want)
	}
	n := make([]int, want)
	for i, w := range words {
		v, err := strconv.Atoi(w)
		if err != nil {
			return nil, fmt.Errorf("%q is no number", w)
		}
		n[i] = v
	}
	return n, nil
}
