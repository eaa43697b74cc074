package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
)

// drawing says what is drawn of a curve's points.
type drawing struct {
	name, title, x string
	panes          []paneOf
}

type paneOf struct {
	y      string
	log    bool
	curves []curveOf
}

// curveOf takes one figure of each point; 0 is none.
type curveOf struct {
	name string
	of   func(*point) float64
}

var (
	rate    = func(p *point) float64 { return p.PerSecond }
	newRate = func(p *point) float64 { return p.NewPerSecond }
	rss     = func(p *point) float64 { return float64(p.RSS) / 1e6 }
	bareRSS = func(p *point) float64 { return float64(p.BareRSS) / 1e6 }
)

// effort is the CPU of a workflow, of all processes.
func effort(grown string) paneOf {
	return paneOf{y: "CPU of a workflow, ms", curves: []curveOf{
		{grown, func(p *point) float64 { return p.CPUMillis }},
		{"a new, empty server", func(p *point) float64 { return p.NewCPU }},
	}}
}

// throughput is W1 where the world has grown, and on a server that is new at the same time.
func throughput(grown string) paneOf {
	return paneOf{y: "W1, workflows/s", curves: []curveOf{{grown, rate}, {"a new, empty server", newRate}}}
}

func waiting(name, title string) drawing {
	return drawing{name: name, title: title, x: "open idle workflows", panes: []paneOf{
		throughput("beside them"), effort("beside them"),
		{y: "RSS at rest, MB", log: true, curves: []curveOf{{"server", rss}, {"NATS alone", bareRSS}}},
	}}
}

var drawings = []drawing{
	waiting("open", "Open workflows that wait for a timer"),
	waiting("waiting", "Open workflows that wait for a signal"),
	{name: "history", title: "Length of the history", x: "events in the history", panes: []paneOf{
		{y: "one decision, ms", curves: []curveOf{
			{"p50", func(p *point) float64 { return p.P50 }},
			{"p99", func(p *point) float64 { return p.P99 }},
			{"p50 of a new run", func(p *point) float64 { return p.NewP50 }},
		}},
	}},
	{name: "lists", title: "Task lists", x: "task lists", panes: []paneOf{
		throughput("spread over them"), effort("spread over them"),
	}},
	{name: "partitions", title: "Partitions", x: "partitions", panes: []paneOf{
		throughput("spread over them"), effort("spread over them"),
	}},
	{name: "payload", title: "Arguments and results of activities", x: "bytes each", panes: []paneOf{
		{y: "W1, workflows/s", log: true, curves: []curveOf{{"payloads of a size", rate}}},
		{y: "payload moved, MB/s", log: true, curves: []curveOf{{"arguments and results", func(p *point) float64 { return p.Moved }}}},
		effort("payloads of a size"),
	}},
}

// drawAll writes a picture for each curve that has points.
func drawAll(points []*point, folder string) error {
	for _, d := range drawings {
		of := latest(points, d.name)
		if len(of) == 0 {
			continue
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, "grow-"+d.name+".svg"), []byte(d.chart(of).svg()), 0o644); err != nil {
			return fmt.Errorf("the picture of %s: %w", d.name, err)
		}
	}
	return nil
}

// chart puts the points where they are drawn.
func (d *drawing) chart(points []*point) *chart {
	c := &chart{title: d.title, x: d.x}
	for _, from := range d.panes {
		p := pane{y: from.y, log: from.log}
		for _, l := range from.curves {
			line := curve{name: l.name}
			for _, at := range points {
				if v := l.of(at); v > 0 {
					line.dots = append(line.dots, dot{float64(cmp.Or(at.Events, int64(at.At))), v}) // a history has more events than asked for
				}
			}
			if len(line.dots) > 0 {
				p.curves = append(p.curves, line)
			}
		}
		if len(p.curves) > 0 {
			c.panes = append(c.panes, p)
		}
	}
	return c
}
