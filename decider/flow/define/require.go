package define

import (
	"strings"

	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/value"
	"github.com/droverhq/drover/schemas/requirement"
)

// required refuses a require of set-state that the broker cannot judge. It is judged together with
// the write, where there are no expressions, patterns and sizes: the broker knows some checks of
// conditions only.
func required(file string, text []byte, d *model.Definition) error {
	var all model.Errors
	for s := range d.All() {
		if s.Type != "set-state" || s.Inputs["require"] == nil {
			continue
		}
		require, err := value.Encode(plain(s.Inputs["require"]))
		if err == nil {
			_, err = requirement.Parse(require)
		}
		if err != nil {
			all = append(all, model.At(file, text, s.Pos, "require: "+err.Error(), ""))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// plain is a value with a number in the place of every expression, as which it may come out.
func plain(v any) any {
	return value.Replace(v, func(leaf any) any {
		if s, ok := leaf.(string); ok && strings.Contains(s, "${") {
			return int64(0)
		}
		return leaf
	})
}
