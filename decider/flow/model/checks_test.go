package model_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/model"
	"github.com/google/go-cmp/cmp"
)

// The languages within texts are handed to the checks: each text once, to the right one.
func TestChecks(t *testing.T) {
	var got []string
	note := func(what string) func(string) error {
		return func(text string) error { got = append(got, what+" "+text); return nil }
	}
	o := &model.Options{Types: registry(t), Checks: model.Checks{
		Text: note("text"), Let: note("let"), Transform: note("transform"), Backoff: note("backoff"), Limit: note("limit"), Concurrency: note("concurrency"),
		Condition: func(v any) error { got = append(got, fmt.Sprint("condition ", v)); return nil },
	}}
	for yaml, want := range map[string][]string{
		"- let x = ${a} + 1":                                                    {"let ${a} + 1"},
		"- {type: let, variable: x, value: '${a} + 1'}":                         {"text ${a} + 1"},
		"- {type: let, variable: x, value: {a: '${b}'}}":                        {"text ${b}"},
		"- {step: 'let x = ${a} b', interpolation_mode: full}":                  {"text ${a} b"},
		"- {step: 'let x = ${a} b', interpolation_mode: disabled}":              nil,
		"- {type: let, variable: x, value: '1 + 1', interpolation_mode: words}": {"let 1 + 1"},
		"- transform x = ${a} | trim | first":                                   {"text ${a}", "transform trim | first"},
		"- {type: transform, variable: x, transform: [trim, 'get ${x}']}":       {"transform trim", "transform get ${x}"},
		"- log a ${b}": {"text a ${b}"},
		"- log a":      nil,
		"- {step: no-op, foo: {a: ['${b}']}, input: {c: '${d}'}, name: 'n ${e}'}":                                            {"text n ${e}", "text ${b}", "text ${d}"},
		"- {step: no-op, output: {a: '${b}'}, timeout: '${c}', next: '${d}'}":                                                {"text ${b}", "text ${c}", "text ${d}"},
		"- {step: no-op, condition: {target: '${a}'}}":                                                                       {"condition map[target:${a}]"},
		"- retry limit 5 backoff 1s jitter 50%":                                                                              {"backoff 1s jitter 50%", "limit 5"},
		"- {type: retry, limit: [1, 2 in 1m, '${x}']}":                                                                       {"limit 1", "limit 2 in 1m", "text ${x}"},
		"- retry limit ${x} backoff ${y}":                                                                                    {"text ${x}", "text ${y}"},
		"- {step: 'foreach x in ${a}', concurrency: 50%, do: 'log ${x}'}":                                                    {"concurrency 50%", "text ${a}", "text ${x}"},
		"- {step: foreach x in 1..2, concurrency: '${n}', do: no-op}":                                                        {"text ${n}"},
		"- {step: foreach x in 1..2, reducing: {a: '${b}'}, do: no-op}":                                                      {"text ${b}"},
		"- {step: set-state a = 1, require: {any: [1]}}":                                                                     {"condition map[any:[1]]"},
		"- {step: ssh ls, exit_code: {less-than: 2}}":                                                                        {"condition map[less-than:2]"},
		"- {step: ssh ls, exit_code: any}":                                                                                   nil,
		"- {step: 'switch ${v}', cases: [{step: log a, condition: 1}, log b]}":                                               {"condition 1", "text ${v}"},
		"- {type: workflow, target: [1], condition: 5, output: '${o}', lock: {name: '${l}', scope: '${s}'}, steps: [no-op]}": {"condition 5", "text ${l}", "text ${o}", "text ${s}"},
		"{input: {a: '${b}'}, output: '${c}', timeout: '${d}', lock: '${e}', condition: true, retention: '5 hash ${f}'}":     {"condition true", "text ${b}", "text ${c}", "text ${d}", "text ${e}", "text 5 hash ${f}"},
		"- apt-get ${x}":                     {"text ${x}"},
		"- {type: apt-get, package: '${x}'}": {"text ${x}"},
		"- activity a with b = ${c}":         {"text b = ${c}"},
	} {
		got = nil
		if _, err := model.Parse("", []byte(yaml), o); err != nil {
			t.Errorf("%s: %v", yaml, err)
			continue
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", yaml, diff)
		}
	}
}

type placed struct{ offset int }

func (p *placed) Error() string { return "bad" }

// The offset of a check's error becomes a line and a column, wherever the text stands.
func TestCheckPlaces(t *testing.T) {
	find := func(text string) error {
		if at := strings.Index(text, "!"); at >= 0 {
			return &placed{at}
		}
		return nil
	}
	o := &model.Options{Types: registry(t), Checks: model.Checks{
		Text: find, Let: find, Transform: find, Backoff: find, Limit: find, Concurrency: find,
		Condition: func(any) error { return errors.New("bad") },
		Explain: func(err error) (int, string, string) {
			if p, ok := errors.AsType[*placed](err); ok {
				return p.offset, "bad", "do better"
			}
			return -1, err.Error(), ""
		},
	}}
	for yaml, want := range map[string]string{
		"- let x = a !":                                             "1:13: bad (do better)",
		"- step: let x = é !":                                       "1:19: bad (do better)",
		"- 'let x = !'":                                             "1:12: bad (do better)",
		"- if ${x} then let x = a !":                                "1:26: bad (do better)",
		"- foreach x in 1..2 do if ${x} then let x = !":             "1:45: bad (do better)",
		"- log \"${x} !\" ":                                         "1:13: bad (do better)",
		"- transform x | a | !":                                     "1:21: bad (do better)",
		"- retry limit 1 backoff 1s !":                              "1:28: bad (do better)",
		"- {type: no-op, a: [b, '${c} !']}":                         "1:30: bad (do better)",
		"- {step: no-op, condition: 1}":                             "1:28: bad",
		"- |\n  let x = !":                                          "1:3: bad (do better)", // a block text is told by where it begins
		"- {step: 'foreach x in 1..2 do no-op', concurrency: '1!'}": "1:55: bad (do better)",
	} {
		_, err := model.Parse("", []byte(yaml), o)
		if err == nil {
			t.Errorf("%s: got no error", yaml)
			continue
		}
		if got := asErrors(t, err)[0].String(); got != want {
			t.Errorf("%s: got %s, want %s", yaml, got, want)
		}
	}
}
