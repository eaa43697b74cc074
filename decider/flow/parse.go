package flow

import (
	"github.com/droverhq/drover/decider/flow/define"
	"github.com/droverhq/drover/decider/flow/model"
)

// ParseOptions say how the definition of a flow, or of a step type if it has an id, is read. The
// zero value knows no registered step types.
type ParseOptions struct {
	// Types finds a registered step type by its name. Defaults to none.
	Types func(name string) (*model.Definition, bool)
	// Warn is told of what is allowed but hardly meant. Nil ignores it.
	Warn func(*model.Error)
}

// Parse reads a definition and all the languages in its texts. The file is for messages only.
// Errors are of type model.Errors where they have a place.
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
	return r.Definition, nil
}
