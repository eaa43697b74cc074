package model_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/model"
)

// F6: what is judged, or waited for, has an expression; a word alone is a forgotten ${...}.
func TestRefusesConstants(t *testing.T) {
	for yaml, want := range map[string]string{
		"- if count == 3 then log a":                                           `1:6: target is "count", which is always the same (did you mean ${count}?)`,
		"- if count then log a":                                                "did you mean ${count}?",
		"- if \"count > 3\" then log a":                                        "write an expression such as ${x}",
		"- {type: if, target: count, equals: 3, then: log a}":                  "did you mean ${count}?",
		"- if 5 then log a":                                                    "write an expression",
		"- {step: switch kind, cases: [{step: log a, condition: b}, no-op]}":   "did you mean ${kind}?",
		"- {type: switch, value: kind, cases: [no-op]}":                        "did you mean ${kind}?",
		"- wait ready":                                                         "value is \"ready\", which is always the same (did you mean ${ready}?)",
		"- wait x = order.state":                                               "did you mean ${order.state}?",
		"- {type: wait, value: true}":                                          "write an expression",
		"- {step: no-op, condition: {target: count, equals: 3}}":               "1:37: the condition's target is \"count\", which is always the same (did you mean ${count}?)",
		"- {step: no-op, condition: {any: [{target: count, equals: 3}]}}":      "did you mean ${count}?",
		"- {step: no-op, condition: {not: {target: count, less-than: 3}}}":     "did you mean ${count}?",
		"- {type: foreach, target: items, target_var_name: i, steps: [no-op]}": "write a list, a range",
	} {
		_, err := model.Parse("", []byte(yaml), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", yaml, err, want)
		}
	}
	for _, yaml := range []string{
		"- if ${count} == 3 then log a", "- if 3 == ${count} then log a", "- if true then log a", "- {type: if, target: false, then: log a}",
		"- if \"${n} < 3\" then log a", "- {step: switch, cases: [{step: log a, condition: {target: '${x}', equals: 1}}, no-op]}",
		"- wait ${ready}", "- wait for signal paid", "- {step: no-op, condition: {target: '${x}', equals: count}}",
		"- {type: switch, value: true, cases: [no-op]}", "- {step: no-op, condition: true}",
	} {
		if _, err := model.Parse("", []byte(yaml), nil); err != nil {
			t.Errorf("%s: %v", yaml, err)
		}
	}
}

// F5: a variable of a name that every run knows would never be read, or hide what the name means.
func TestRefusesNamesOfEveryRun(t *testing.T) {
	for _, name := range []string{"workflow", "entity", "output", "state"} {
		for _, yaml := range []string{
			"- let NAME.x = 1", "- let NAME = 1", "- let integer NAME.x = 1", "- {type: let, variable: NAME.a, value: 1}", "- transform NAME.a = b | trim",
			"- wait NAME.a = ${b}", "- wait-for-signal NAME = paid", "- clear-workflow-variable NAME.a", "- transform x = a | set NAME.a",
			"- load NAME.x = a", "- foreach NAME in 1..2 do no-op", "- {type: foreach, target: 1..2, target_var_name: '{a,NAME}', steps: [no-op]}",
			"- {type: foreach, target: 1..2, target_var_name: i, target_index_var_name: NAME, steps: [no-op]}",
			"- {type: foreach, target: 1..2, target_var_name: i, reducing: {NAME: 1}, steps: [no-op]}",
		} {
			yaml = strings.ReplaceAll(yaml, "NAME", name)
			if _, err := model.Parse("", []byte(yaml), nil); err == nil {
				t.Errorf("%s: got no error", yaml)
			}
		}
	}
}
