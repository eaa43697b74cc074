// Package retention is the language in which authors say for how long ended runs are kept, and the
// judgement by it.
//
// A text such as
//
//	max(24h, 5) soft 10 hash start-stop
//
// is parsed into an [Expr]. When a run starts, or changes its retention on the way, the expression
// becomes a [Policy]: context, parent and system are replaced by what they stand for at that
// moment, so that a policy refers to nothing and cannot recurse, however often a run says
// max(context, 1h). [Keep] judges the ended runs of one group by a policy and says why.
//
// Grammar; words have no case, the hash keeps its own:
//
//	expression = [ "hash" word ] [ "hard" ] [ value | "disabled" ] { "hash" text | "soft" value | "hard" }
//	value      = count | duration | "forever" | "all" | "context" | "parent" | "system"
//	           | ( "min" | "max" ) "(" value { "," value } ")"
//
// A hash after the value goes on to the end or to the word soft or hard; in double quotes it may
// hold these words too, and a backslash before a quote or a backslash. What ${...} encloses is
// never split. hard means that soft is the same as the value.
//
// Everything here is a function of its arguments: no clock, no store. Whoever keeps runs may use
// it: parsers of definitions, deciders, the janitor.
package retention

import (
	"strconv"
	"strings"
	"time"

	"github.com/droverhq/drover/internal/duration"
)

// Expr is a retention as written. What is not given is zero, and means "as before" in a change and
// "parent" at the start.
type Expr struct {
	// names the group in place of the workflow's name; a template that the caller interpolates
	Hash string
	Disk *Value // nil: not given
	Soft *Value // nil: not given
	Hard bool   // Soft is what Disk is; then Soft is nil
	// nothing stays once the run has closed, and it is never replayed; then Disk is nil
	Disabled bool
}

// Kind says which of a Value's fields count.
type Kind int

// The kinds of values. Parent and the like are gone in a Policy.
const (
	Count    Kind = iota + 1 // so many of the most recently closed
	Duration                 // those that closed no longer ago than this
	Forever
	Context // the value before this change
	Parent  // the value of the parent run, or the system's
	System
	Min // those that all arguments keep
	Max // those that any argument keeps
)

// Value is one value of the language.
type Value struct {
	Kind     Kind
	Count    int           // of Count
	Duration time.Duration // of Duration
	Args     []Value       // of Min and Max, at least one
}

// String writes the value so that it parses back.
func (v Value) String() string {
	switch v.Kind {
	case Count:
		return strconv.Itoa(v.Count)
	case Duration:
		return duration.String(v.Duration)
	case Min, Max:
		args := make([]string, len(v.Args))
		for i, a := range v.Args {
			args[i] = a.String()
		}
		return v.Kind.String() + "(" + strings.Join(args, ", ") + ")"
	}
	return v.Kind.String()
}

func (k Kind) String() string {
	switch k {
	case Count:
		return "count"
	case Duration:
		return "duration"
	case Forever:
		return "forever"
	case Context:
		return "context"
	case Parent:
		return "parent"
	case System:
		return "system"
	case Min:
		return "min"
	case Max:
		return "max"
	}
	return "kind " + strconv.Itoa(int(k))
}

// String writes the expression so that Parse reads the same one: the hash first, then the value,
// then soft or hard.
func (e Expr) String() string {
	var parts []string
	if e.Hash != "" {
		parts = append(parts, "hash "+quote(e.Hash))
	}
	switch {
	case e.Disabled:
		parts = append(parts, "disabled")
	case e.Disk != nil:
		parts = append(parts, e.Disk.String())
	}
	switch {
	case e.Hard:
		parts = append(parts, "hard")
	case e.Soft != nil:
		parts = append(parts, "soft "+e.Soft.String())
	}
	return strings.Join(parts, " ")
}

// quote leaves alone what is one word.
func quote(hash string) string {
	if !strings.ContainsAny(hash, " \t\"\\{}") {
		return hash
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(hash) + `"`
}

// MarshalText is String.
func (e Expr) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText is Parse.
func (e *Expr) UnmarshalText(text []byte) error {
	got, err := Parse(string(text))
	*e = got
	return err
}
