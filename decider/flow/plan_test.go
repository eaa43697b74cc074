package flow

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// planned is a flow of which it is plain what has to happen: each activity once, after those before it. It is drawn, written as YAML,
// and read as what a run of it may do, without the machine.
type planned struct {
	kind  string // activity, sleep, block, workflow or foreach
	name  string // of an activity: nothing else in any version has it
	again bool   // the activity may run again
	tries int    // of a retry after its failures
	n     int    // runs of a foreach, and how many at once
	width int
	steps []*planned
}

// drawPlan makes up the steps of a version. The names of its activities begin with the version's.
func drawPlan(t *rapid.T, version string, depth int, count *int) []*planned {
	var steps []*planned
	for range rapid.IntRange(1, 3).Draw(t, "steps") {
		kinds := []string{"activity", "activity", "sleep"}
		if depth < 3 {
			kinds = append(kinds, "block", "workflow", "foreach", "foreach")
		}
		*count++
		p := &planned{kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		switch p.kind {
		case "activity":
			p.name, p.again = fmt.Sprint(version, *count), rapid.IntRange(0, 3).Draw(t, "again") > 0
			if p.again {
				p.tries = rapid.IntRange(0, 2).Draw(t, "tries")
			}
		case "foreach":
			p.n, p.width = rapid.IntRange(0, 3).Draw(t, "n"), rapid.IntRange(1, 3).Draw(t, "width")
			fallthrough
		case "block", "workflow":
			p.steps = drawPlan(t, version, depth+1, count)
		}
		steps = append(steps, p)
	}
	return steps
}

func writePlan(out *strings.Builder, indent string, steps []*planned) {
	for _, p := range steps {
		switch p.kind {
		case "activity":
			fmt.Fprintf(out, "%s- step: activity %s\n", indent, p.name)
			if p.again {
				fmt.Fprintf(out, "%s  idempotent: yes\n", indent)
			}
			if p.tries > 0 {
				fmt.Fprintf(out, "%s  on-error: [retry limit %d]\n", indent, p.tries)
			}
			continue
		case "sleep":
			fmt.Fprintf(out, "%s- sleep 1s\n", indent)
			continue
		case "block":
			fmt.Fprintf(out, "%s- type: subworkflow\n", indent)
		case "workflow":
			fmt.Fprintf(out, "%s- type: workflow\n", indent)
		case "foreach":
			list := []string{"a", "b", "c"}[:p.n]
			fmt.Fprintf(out, "%s- type: foreach\n%s  target_var_name: n\n%s  target: [%s]\n%s  concurrency: %d\n", indent, indent, indent, strings.Join(list, ", "), indent, p.width)
		}
		fmt.Fprintf(out, "%s  steps:\n", indent)
		writePlan(out, indent+"  ", p.steps)
	}
}

func planText(steps []*planned) string {
	var out strings.Builder
	out.WriteString("name: flow\nsteps:\n")
	writePlan(&out, "", steps)
	return out.String()
}

// duty is one activity of a run, by its name and the runs within which it stands.
type duty struct {
	*planned
	after []string // the keys of what has to have succeeded before
}

// duties is what a run of these steps does. Each has after its name the numbers of the inner runs that lead to it.
func duties(steps []*planned, place string, after []string, all map[string]*duty) (done []string) {
	done = append(done, after...)
	for _, p := range steps {
		switch p.kind {
		case "activity":
			key := p.name + place
			all[key] = &duty{planned: p, after: append([]string(nil), done...)}
			done = append(done, key)
		case "block":
			done = duties(p.steps, place, done, all)
		case "workflow":
			done = duties(p.steps, place+"/0", done, all)
		case "foreach":
			before := done
			for i := range p.n {
				later := before
				if p.width == 1 {
					later = done
				}
				done = append(append([]string(nil), done...), duties(p.steps, fmt.Sprint(place, "/", i), later, all)[len(later):]...)
			}
		}
	}
	return done
}
