package machine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/droverhq/drover/decider/flow/condition"
	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/decider/flow/value"
)

// A part of a state key, as in set-state counts['${colour}'] = 1, is changed as who changes it by
// hand would: the key is read, and written with the requirement that it still has the value that
// was read. If it has not, all of that is done again, so no change of others is lost.

// statePart is a place within the value of a state key.
type statePart struct {
	key  *expr.Expr
	path []statePlace
}

// statePlace is one bracket: a step, or what is evaluated to one.
type statePlace struct {
	step  value.Step
	key   *expr.Expr // a text in quotes
	index *expr.Expr // an expression alone: a whole number is an index, a text a key
}

// parsePart reads a key with brackets after it; nil if it has none. Brackets within ${…} are those
// of expressions.
func parsePart(text string) (*statePart, error) {
	at := 0
	for at < len(text) && text[at] != '[' {
		if strings.HasPrefix(text[at:], "${") {
			at = syntax.Braces(text, at)
			continue
		}
		at++
	}
	switch {
	case at == len(text):
		return nil, nil
	case at == 0:
		return nil, errors.New("the key is missing: write it before the bracket")
	}
	p := &statePart{}
	var err error
	if p.key, err = expr.ParseValue(text[:at], expr.Options{Mode: expr.Full}); err != nil {
		return nil, err
	}
	for at < len(text) {
		if text[at] != '[' {
			return nil, fmt.Errorf(
				"%s does not continue the part of a state key: write further keys in brackets, as in a['b']['c']",
				syntax.Quote(text[at:]))
		}
		var one statePlace
		if one, at, err = parsePlace(text, at+1); err != nil {
			return nil, err
		}
		if p.path = append(p.path, one); len(p.path) > value.MaxPath {
			return nil, fmt.Errorf("it has more than %d brackets", value.MaxPath)
		}
	}
	return p, nil
}

// parsePlace reads what stands after a bracket, and returns where it goes on after the one that
// closes it.
func parsePlace(text string, at int) (statePlace, int, error) {
	if at < len(text) && (text[at] == '\'' || text[at] == '"') {
		return parseQuoted(text, at)
	}
	end := at
	for end < len(text) && text[end] != ']' {
		if strings.HasPrefix(text[end:], "${") {
			end = syntax.Braces(text, end)
			continue
		}
		end++
	}
	if end == len(text) {
		return statePlace{}, 0, errors.New("the bracket is not closed: write ] after the index")
	}
	inside := text[at:end]
	if strings.HasPrefix(inside, "${") && syntax.Braces(inside, 0) == len(inside) {
		x, err := expr.ParseValue(inside, expr.Options{Mode: expr.Full})
		return statePlace{index: x}, end + 1, err
	}
	if inside == "" {
		return statePlace{step: value.Step{Kind: value.Append}}, end + 1, nil
	}
	n, err := strconv.ParseInt(inside, 10, 64)
	if err != nil {
		return statePlace{}, 0, fmt.Errorf(
			"%s is no index: write a number, an expression, or a key in quotes, as in a['key']",
			syntax.Quote(inside))
	}
	step, err := indexStep(n)
	return statePlace{step: step}, end + 1, err
}

func parseQuoted(text string, at int) (statePlace, int, error) {
	key, end, err := value.QuotedKey(text, at)
	if wrong, ok := errors.AsType[*syntax.Error](err); ok {
		// the key stands beside it
		return statePlace{}, 0, errors.New(wrong.Problem + ": " + wrong.Hint)
	}
	x, err := expr.ParseValue(key, expr.Options{Mode: expr.Full})
	return statePlace{key: x}, end, err
}

func indexStep(n int64) (value.Step, error) {
	switch {
	case n == -1:
		return value.Step{Kind: value.Append}, nil
	case n < 0 || int64(int(n)) != n:
		return value.Step{}, fmt.Errorf(
			"the index %d is not one of a list: only -1 is allowed of those below 0, for the "+
				"place after the last element", n)
	}
	return value.Step{Kind: value.Index, Index: int(n)}, nil
}

// at evaluates the place.
func (p *statePart) at(x *act) (path value.Path, err error) {
	for _, one := range p.path {
		step := one.step
		switch {
		case one.key != nil:
			step.Kind = value.Key
			step.Key, err = textOf(x.eval(one.key))
		case one.index != nil:
			var v any
			v, err = x.eval(one.index)
			switch v := v.(type) {
			case int64:
				step, err = indexStep(v)
			case string:
				step = value.Step{Kind: value.Key, Key: v}
			default:
				if err == nil {
					err = fmt.Errorf("a %s is no place in a state key: give a whole number or a "+
						"text", value.TypeName(v))
				}
			}
		}
		if err != nil {
			return nil, err
		}
		path = append(path, step)
	}
	return path, nil
}

// Where an instance remembers the value that it changes a part of, the one before, and how often it
// was refused with the same one. State keys have no control characters in their names.
const (
	partNow    = "\x00now"
	partBefore = "\x00before"
	partVain   = "\x00vain"
)

// changePart makes of a change of a part that of the whole key. A part that is not there is
// cleared.
func (m *machine) changePart(x *act, a Action) (result, error) {
	path, err := x.st.part.at(x)
	if err != nil {
		return result{}, err
	}
	now, ok := x.inst.Reads[partNow]
	if !ok {
		return result{}, m.askPart(x, a)
	}
	if x.st.require != nil {
		part, err := partOf(now.V, path)
		if err != nil {
			return result{}, fmt.Errorf("state key %s: %w", a.Name, err)
		}
		if ok, err := x.holds(x.st.require, part); err != nil {
			return result{}, err
		} else if !ok {
			return result{}, run.NewFailure(run.NameRequire,
				"the part of the state key does not have the required value")
		}
	}
	var next any
	if a.Do == ClearState {
		var found bool
		if next, found, err = value.Clear(now.V, path); err == nil && !found {
			return result{}, nil
		}
	} else {
		next, err = value.Set(now.V, path, a.Value)
	}
	if err != nil {
		return result{}, fmt.Errorf("state key %s: %w", a.Name, err)
	}
	a.Do, a.Value, a.Require = WriteState, next, map[string]any{"equals": now.V}
	if now.V == nil {
		a.Require = map[string]any{"when": "absent_or_null"}
	}
	return result{}, m.waitFor(a)
}

// partOf is what a requirement is about.
func partOf(v any, path value.Path) (condition.Subject, error) {
	for _, s := range path {
		if s.Kind == value.Append { // nothing is there yet
			return condition.Subject{}, nil
		}
	}
	part, found, err := value.Get(v, path)
	if err != nil || !found {
		return condition.Subject{}, err
	}
	return condition.Value(part), nil
}

// askPart reads the key.
func (m *machine) askPart(x *act, a Action) error {
	id := x.id() + "?[]"
	m.do(Action{Do: ReadState, ID: id, Name: a.Name, Scope: a.Scope})
	return m.await(run.Wait{For: ReadState, ID: id, Key: partNow})
}

const (
	// maxVain is how often in a row a change of the same value is tried: one that is another when
	// it is written again would be for ever.
	maxVain = 20
	// partPause is how long rivals wait at most before they try again; it grows to partPauseMost.
	partPause     = 20 * time.Millisecond
	partPauseMost = 2 * time.Second
)

// partRefused tries again: somebody else has changed the key meanwhile. Many who do so at once get
// out of each other's way.
func (m *machine) partRefused(x *act) (result, error) {
	reads := x.inst.Reads
	vain, _ := reads[partVain].V.(int64)
	if before, again := reads[partBefore]; again && value.Equal(before.V, reads[partNow].V) {
		vain++
	} else {
		vain = 0
	}
	if vain >= maxVain {
		return result{}, run.NewFailure(run.NameRequire,
			"the value of the state key is not the same when it is written again, so no part of "+
				"it can be changed: set the whole key")
	}
	x.inst.Reads = map[string]run.Value{partBefore: reads[partNow], partVain: {V: vain}}
	x.inst.Polls++
	pause := min(partPause<<min(x.inst.Polls, 10), partPauseMost)
	return result{}, m.waitFor(Action{
		Do:    StartTimer,
		ID:    x.id() + "!again",
		Delay: time.Duration(m.random() * float64(pause)),
	})
}
