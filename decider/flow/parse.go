package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/droverhq/drover/decider/flow/define"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/schemas"
)

// ParseOptions say how the definition of a flow, or of a step type if it has an id, is read. The zero value knows no registered step types.
type ParseOptions struct {
	// Types finds a registered step type by its name. Defaults to none.
	Types func(name string) (*model.Definition, bool)
	// Warn is told of what is allowed but hardly meant. Nil ignores it.
	Warn func(*model.Error)
}

// Parse reads a definition and all the languages in its texts, and refuses what this release cannot run. The file is for messages
// only. Errors are of type model.Errors where they have a place.
func Parse(file string, text []byte, o *ParseOptions) (*model.Definition, error) {
	if o == nil {
		o = &ParseOptions{}
	}
	r, err := define.Parse(file, text, o.Types)
	if err != nil {
		return nil, err
	}
	if o.Warn != nil {
		for _, w := range r.Warnings {
			o.Warn(w)
		}
	}
	if err := runnable(r.Definition); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r.Definition, nil
}

// Supported tells whether the broker of this release carries out a decision that flows need beyond those of every run. Flows that
// cannot do without are refused when they are parsed.
func Supported(d schemas.DecisionType) bool { return !unsupported[d] }

var unsupported = map[schemas.DecisionType]bool{
	schemas.DecideGetState:   true,
	schemas.DecideSetState:   true,
	schemas.DecideClearState: true,
}

// runnable refuses state keys as long as the broker has none.
func runnable(d *model.Definition) error {
	all := []*model.Definition{d}
	for _, t := range d.Types {
		all = append(all, t)
	}
	for _, one := range all {
		if err := needsNothing(one); err != nil {
			return err
		}
	}
	return nil
}

func needsNothing(d *model.Definition) error {
	for s := range d.All() {
		switch {
		case (s.Type == "set-state" || s.Type == "clear-state") && !Supported(schemas.DecideSetState):
			return fmt.Errorf("line %d: step %s is of type %s, and this release of the broker keeps no state keys yet: hand the value to an activity", s.Pos.Line, s.Ref, s.Type)
		case !Supported(schemas.DecideGetState) && (reads(s.Inputs) || reads(s.Output) || asks(s.Condition)):
			return fmt.Errorf("line %d: step %s reads a state key, and this release of the broker keeps none yet: let an activity read the value", s.Pos.Line, s.Ref)
		}
	}
	return nil
}

// reads tells whether a value has an expression that names a state key.
func reads(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, "${entity.") || strings.Contains(v, "${state.")
	case []any:
		return slices.ContainsFunc(v, reads)
	case map[string]any:
		for _, e := range v {
			if reads(e) {
				return true
			}
		}
	}
	return false
}

// asks tells whether a condition names one.
func asks(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, asks)
	case map[string]any:
		for k, e := range v {
			if k == "sensor" || k == "config" || k == "state" || asks(e) {
				return true
			}
		}
	}
	return reads(v)
}
