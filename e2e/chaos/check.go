package chaos

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// CheckOptions of [Check].
type CheckOptions struct {
	// Timeout bounds the judgement of one key. Defaults to 20 s.
	Timeout time.Duration
	// Dir is where an HTML picture of each violation is written. Defaults to none.
	Dir string
}

// Verdict is what [Check] found.
type Verdict struct {
	// Keys counts the runs, workflow ids and claims that were judged.
	Keys int
	// Violations say what no correct service can have done.
	Violations []string
	// Undecided are keys whose judgement took too long. They prove nothing.
	Undecided []string
}

// judged says which model judges which operations.
var judged = []struct {
	name  string
	model porcupine.NondeterministicModel
	kinds []Kind
}{
	{"list", lists, []Kind{Append, Final}},
	{"flag", flags, []Kind{Set, Reset, Log}},
	{"start", starts, []Kind{Start, End, Open}},
	{"claim", claimed, []Kind{Take, Use}},
}

// Check judges recorded operations, each key by itself. Reads that failed or were not answered say
// nothing and are left out.
func Check(ops []Op, o CheckOptions) Verdict {
	if o.Timeout == 0 {
		o.Timeout = 20 * time.Second
	}
	var v Verdict
	for _, j := range judged {
		byKey := map[string][]porcupine.Operation{}
		for _, op := range slices.Concat(ops, ghosts(ops)) {
			if slices.Contains(j.kinds, op.Kind) && !pointless(op) {
				byKey[op.Key] = append(byKey[op.Key], operation(op))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(byKey)) {
			v.Keys++
			v.judge(j.name, key, j.model.ToModel(), byKey[key], o)
		}
	}
	v.peeks(ops)
	return v
}

// ghosts are what a start that was answered with another run may still do: an earlier try of it, of
// which nobody has heard, may be on its way to the owner, and nothing in a history remembers a
// start that began no run. So it may begin its run when the other one has ended. Only those are
// made whose run somebody has met.
func ghosts(ops []Op) []Op {
	met := map[string]bool{}
	for _, o := range ops {
		if o.Kind == Open || o.Kind == End || o.Kind == Start && o.Result != o.Arg {
			met[o.Result], met[o.Arg] = true, met[o.Arg] || o.Kind == End
		}
	}
	var all []Op
	for _, o := range ops {
		if o.Kind == Start && o.Outcome != Unknown && o.Result != o.Arg && met[o.Arg] {
			o.Outcome, o.Result = Unknown, ""
			all = append(all, o)
		}
	}
	return all
}

// pointless tells whether an operation was a read that got no answer, or a claim that was not
// taken.
func pointless(o Op) bool {
	switch o.Kind {
	case Open, Final, Log, Peek, Take, Use:
		return o.Outcome != OK
	case Append:
		return o.Outcome == Failed
	default:
		return false
	}
}

func (v *Verdict) judge(
	name, key string, m porcupine.Model, ops []porcupine.Operation, o CheckOptions,
) {
	result, info := porcupine.CheckOperationsVerbose(m, ops, o.Timeout)
	switch result {
	case porcupine.Ok:
		return
	case porcupine.Unknown:
		v.Undecided = append(v.Undecided, name+" "+key)
		return
	}
	var text strings.Builder
	text.WriteString(
		fmt.Sprintf("%s %s: no order of these %d operations explains what the clients saw",
			name, key, len(ops)))
	if o.Dir != "" {
		picture := filepath.Join(o.Dir, "violation-"+name+"-"+safe(key)+".html")
		if err := draw(picture, m, info); err != nil {
			text.WriteString(fmt.Sprintf("; no picture of it: %v", err))
		} else {
			text.WriteString("; see " + picture)
		}
	}
	if len(ops) <= 60 {
		for _, op := range ops {
			in := op.Input.(Op)
			text.WriteString(fmt.Sprintf("\n  %d-%d %s", in.Call, in.Return, in))
		}
	}
	v.Violations = append(v.Violations, text.String())
}

func safe(key string) string {
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ':' {
			return '_'
		}
		return r
	}, key)
}

func draw(name string, m porcupine.Model, info porcupine.LinearizationInfo) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := porcupine.Visualize(m, info, f); err != nil {
		return err
	}
	return f.Close()
}

// peeks judges what was seen of lists before they were complete.
func (v *Verdict) peeks(ops []Op) {
	final, seen := map[string][]string{}, map[string][]Op{}
	for _, o := range ops {
		switch {
		case o.Kind == Final && o.Outcome == OK:
			final[o.Key] = o.Values
		case o.Kind == Peek:
			seen[o.Key] = append(seen[o.Key], o)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(seen)) {
		values, ok := final[key]
		if !ok {
			continue
		}
		if err := prefixes(values, seen[key]); err != nil {
			v.Violations = append(v.Violations, fmt.Sprintf("list %s: %v", key, err))
		}
	}
}
