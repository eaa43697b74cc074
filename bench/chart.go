package main

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// chart is a picture of panels, one above the other, that share what is drawn along.
type chart struct {
	title string
	x     string // what is drawn along, with its unit
	panes []pane
}

// pane is one pair of axes. The one along is logarithmic; the other begins at 0, or is logarithmic too.
type pane struct {
	y      string // what is drawn, with its unit
	log    bool
	curves []curve
}

// curve is drawn as a line through its points, in the order of x.
type curve struct {
	name string
	dots []dot
}

type dot struct{ x, y float64 }

const (
	chartWidth  = 640
	chartHead   = 34
	paneHeight  = 210
	paneLeft    = 64
	paneRight   = 24
	paneTop     = 26
	paneBottom  = 40
	pixelsATick = 34 // at least so far apart are the ticks of the upright axis
	// Readers' pages are light or dark, and an SVG in an <img> is told which. The ground is painted as well, for pages that
	// are not what the system asks for.
	chartStyle = `
  .ground { fill: #ffffff } text { font: 11px Helvetica, Arial, sans-serif; fill: #3e4c59 }
  .title { font-size: 14px; font-weight: bold; fill: #1f2933 } .along { text-anchor: middle } .up { text-anchor: end }
  .grid { stroke: #e4e7eb } .axis { stroke: #7b8794 } .line { fill: none; stroke-width: 2 }
  .c0 { stroke: #0b69a3; fill: #0b69a3 } .c1 { stroke: #c65d07; fill: #c65d07 } .c2 { stroke: #2f7d32; fill: #2f7d32 }
  .line { fill: none } .c1.line { stroke-dasharray: 6 3 } .c2.line { stroke-dasharray: 2 3 }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #11161c } text { fill: #b8c4ce } .title { fill: #f0f4f8 } .grid { stroke: #26313c } .axis { stroke: #7b8794 }
    .c0 { stroke: #62b0e8; fill: #62b0e8 } .c1 { stroke: #f0a35e; fill: #f0a35e } .c2 { stroke: #7cc67f; fill: #7cc67f }
    .line { fill: none }
  }
`
)

// svg draws the chart. The same chart always gives the same bytes.
func (c *chart) svg() string {
	var b strings.Builder
	height := chartHead + len(c.panes)*(paneTop+paneHeight+paneBottom)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img"><style>%[3]s</style>`+"\n",
		chartWidth, height, chartStyle)
	fmt.Fprintf(&b, `<rect class="ground" width="%d" height="%d"/>`+"\n", chartWidth, height)
	write(&b, "title", paneLeft, 22, c.title)
	for i := range c.panes {
		c.pane(&b, &c.panes[i], chartHead+i*(paneTop+paneHeight+paneBottom)+paneTop)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// pane draws one pair of axes, its upper edge at top.
func (c *chart) pane(b *strings.Builder, p *pane, top int) {
	const left, right = paneLeft, chartWidth - paneRight
	bottom := top + paneHeight
	along := c.along()
	across := scale{from: left + 12, to: right - 12, log: true}.spanning(along)
	up := scale{from: float64(bottom), to: float64(top) + 8, log: p.log}
	ticks := up.fit(p.values())
	write(b, "", 8, float64(top)-9, p.y)
	at := float64(right) - 4
	for i, l := range slices.Backward(p.curves) { // the legend, from the right
		at -= float64(6*len(l.name)) + 8
		write(b, "", at, float64(top)-9, l.name)
		fmt.Fprintf(b, `<path class="c%d line" d="M%s %dh16"/>`+"\n", i, short1(at-21), top-13)
		at -= 30
	}
	for _, v := range ticks {
		y := short1(up.place(v))
		fmt.Fprintf(b, `<path class="grid" d="M%d %sH%d"/>`, left, y, right)
		write(b, "up", left-6, up.place(v)+4, magnitude(v))
	}
	for _, v := range along {
		x := short1(across.place(v))
		fmt.Fprintf(b, `<path class="axis" d="M%s %dv5"/>`, x, bottom)
		write(b, "along", across.place(v), float64(bottom)+17, magnitude(v))
	}
	fmt.Fprintf(b, `<path class="axis" d="M%d %dV%dH%d" fill="none"/>`+"\n", left, top, bottom, right)
	write(b, "along", float64(left+right)/2, float64(bottom)+33, c.x)
	for i, l := range p.curves {
		var path strings.Builder
		for n, d := range l.dots {
			x, y := short1(across.place(d.x)), short1(up.place(d.y))
			path.WriteString(map[bool]string{true: "M", false: "L"}[n == 0] + x + " " + y)
			fmt.Fprintf(b, `<circle class="c%d" cx="%s" cy="%s" r="3"/>`, i, x, y)
		}
		if len(l.dots) > 1 {
			fmt.Fprintf(b, `<path class="c%d line" d="%s"/>`, i, path.String())
		}
		b.WriteString("\n")
	}
}

// along are all places that any curve has a point at: few enough to be the ticks.
func (c *chart) along() (all []float64) {
	for _, p := range c.panes {
		for _, l := range p.curves {
			for _, d := range l.dots {
				all = append(all, d.x)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (p *pane) values() (all []float64) {
	for _, l := range p.curves {
		for _, d := range l.dots {
			all = append(all, d.y)
		}
	}
	return all
}

// scale maps the values low to high onto the pixels from to to.
type scale struct {
	from, to, low, high float64
	log                 bool
}

func (s scale) spanning(all []float64) scale {
	if len(all) > 0 {
		s.low, s.high = slices.Min(all), slices.Max(all)
	}
	return s
}

func (s *scale) place(v float64) float64 {
	low, high := s.low, s.high
	if s.log {
		low, high, v = math.Log10(low), math.Log10(high), math.Log10(v)
	}
	if high == low {
		return (s.from + s.to) / 2
	}
	return s.from + (s.to-s.from)*(v-low)/(high-low)
}

// fit widens the scale to round numbers and returns its ticks.
func (s *scale) fit(all []float64) (ticks []float64) {
	*s = s.spanning(all)
	if s.log = s.log && s.low > 0; s.log {
		rungs := ladder(s.low, s.high)
		s.low, s.high = rungs[0], rungs[len(rungs)-1]
		if len(rungs) <= 7 {
			return rungs
		}
		return slices.DeleteFunc(rungs, func(v float64) bool { return !strings.HasPrefix(strconv.FormatFloat(v, 'e', 0, 64), "1") })
	}
	s.low, s.high = 0, cmp.Or(s.high, 1)
	most := math.Abs(s.to-s.from) / pixelsATick
	step := s.high
	for _, step = range ladder(s.high/100, s.high) {
		if s.high/step <= most {
			break
		}
	}
	s.high = step * math.Ceil(s.high/step-1e-9)
	for n := 0.0; n*step <= s.high*(1+1e-9); n++ {
		ticks = append(ticks, n*step)
	}
	return ticks
}

// ladder are the numbers 1, 2 and 5 of every power of ten, from the last at or below low to the first above it that is at or
// above high.
func ladder(low, high float64) (rungs []float64) {
	for exponent := int(math.Floor(math.Log10(low))); ; exponent++ {
		for _, digit := range []string{"1e", "2e", "5e"} {
			v, _ := strconv.ParseFloat(digit+strconv.Itoa(exponent), 64) // as people write it, so that ticks are round
			if v <= low {
				rungs = rungs[:0]
			}
			if rungs = append(rungs, v); v > low && v >= high {
				return rungs
			}
		}
	}
}

// magnitude writes a number as people do: 1.5k, 64Ki, 2M.
func magnitude(v float64) string {
	if n := int64(v); n >= 1024 && n&(n-1) == 0 && n < 1<<20 && float64(n) == v {
		return strconv.FormatInt(n/1024, 10) + "Ki"
	}
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= u.size {
			return strconv.FormatFloat(v/u.size, 'g', 4, 64) + u.name
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// short1 is a coordinate, to a tenth of a pixel.
func short1(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

func write(b *strings.Builder, class string, x, y float64, text string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	fmt.Fprintf(b, `<text%s x="%s" y="%s">`, class, short1(x), short1(y))
	_ = xml.EscapeText(b, []byte(text)) // a strings.Builder takes everything
	b.WriteString("</text>\n")
}
