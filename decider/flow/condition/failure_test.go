package condition_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/condition"
	"github.com/droverhq/drover/decider/flow/expr"
)

// Conditions of error handlers judge the error.
func TestFailures(t *testing.T) {
	root := &condition.Failure{Message: "connection refused", Names: []string{"io"}, Fields: dict{"port": int64(80), "none": nil}}
	timeout := &condition.Failure{Message: "no answer\nfor 5s", Names: []string{"timeout", "TimeoutException"}, Cause: root}
	top := &condition.Failure{Message: "step 3 failed", Names: []string{"step"}, Cause: timeout}
	circle := &condition.Failure{Message: "round"}
	circle.Cause = circle
	for _, tc := range []struct {
		predicate any
		failure   *condition.Failure
		want      any
	}{
		{"step 3 failed", top, true},
		{dict{"equals": "step 3 failed"}, top, true},
		{dict{"regex": "step . failed"}, top, true},
		{dict{"glob": "*answer*"}, timeout, true},
		{dict{"glob": "*answer*"}, top, false},
		{dict{"size": 13}, top, true},
		{dict{"when": "present"}, top, true},
		{dict{"when": "present_non_null"}, top, true},
		{dict{"when": "absent_or_null"}, top, false},
		{dict{"when": "truthy"}, top, true},
		{dict{"when": "absent"}, nil, true},
		{dict{"java-instance-of": "TimeoutException"}, timeout, true},
		{dict{"java-instance-of": "java.util.concurrent.TimeoutException"}, timeout, true},
		{dict{"java-instance-of": "TimeoutException"}, top, false},
		{dict{"java-instance-of": "Exception"}, top, true},
		{dict{"key": "message", "when": "absent"}, top, true},
		{dict{"has-element": true}, top, false},
		{dict{"error-cause": dict{"glob": "*answer*"}}, top, true},
		{dict{"error-cause": dict{"glob": "*nothing*"}}, top, false},
		{dict{"error-cause": dict{"glob": "*nothing*"}, "when": "absent"}, top, true},
		{dict{"error-cause": dict{"java-instance-of": "TimeoutException"}, "regex": "(?s)no.*"}, top, true},
		{dict{"error-cause": dict{"java-instance-of": "TimeoutException"}, "regex": "connection.*"}, top, false},
		{dict{"error-cause": dict{"error-field": "port", "equals": 80}}, top, true},
		{dict{"error-cause": "${absent}"}, top, problem("error-cause: ")},
		{dict{"error-cause": true}, top, true},
		{dict{"error-cause": true}, nil, false},
		{dict{"error-cause": "other"}, circle, false},
		{dict{"error-field": "message", "equals": "step 3 failed"}, top, true},
		{dict{"error-field": "type", "equals": "timeout"}, timeout, true},
		{dict{"error-field": "type", "when": "absent"}, circle, true},
		{dict{"error-field": "port", "equals": 80}, root, true},
		{dict{"error-field": "none", "when": "absent_or_null"}, root, true},
		{dict{"error-field": "none", "when": "absent"}, root, false},
		{dict{"error-field": "other", "when": "absent"}, root, true},
		{dict{"error-field": "cause", "java-instance-of": "timeout"}, top, true},
		{dict{"error-field": "cause", "when": "absent"}, root, true},
		{dict{"error-field": "${absent}", "when": "absent"}, root, problem("no such value")},
		{dict{"target": "${i}", "equals": 7}, top, true}, // a target is judged instead of the error
	} {
		check(t, fmt.Sprint(tc.predicate), judge(tc.predicate, condition.Failed(tc.failure)), tc.want)
	}
}

func TestBudget(t *testing.T) {
	c, err := condition.Parse(dict{"has-element": dict{"all": list{dict{"greater-than": 0}, dict{"regex": "x.*"}}}})
	if err != nil {
		t.Fatal(err)
	}
	many := make(list, 1000)
	for i := range many {
		many[i] = int64(1)
	}
	for steps := range 60 {
		ok, err := c.Eval(expr.NewEnv(nil, &expr.Limits{Steps: steps + 1}), condition.Value(many))
		if ok || !errors.Is(err, expr.ErrLimit) {
			t.Fatalf("%d steps: got %v, %v, want ErrLimit", steps+1, ok, err)
		}
	}
}

// Checks of large values cost more than those of small ones, in whatever way they are written.
func TestBudgetOfLargeValues(t *testing.T) {
	text := strings.Repeat("1", 1<<20-100)
	keys := dict{}
	for i := range 40_000 {
		keys[strconv.Itoa(i)] = nil
	}
	for _, tc := range []struct {
		name           string
		check, subject any
	}{
		{"bare value", 5, text},
		{"equals", dict{"equals": 5}, text},
		{"order", dict{"less-than": 5}, text},
		{"size", dict{"size": 5}, text},
		{"regex", dict{"regex": "2*"}, text},
		{"glob", dict{"glob": "*2"}, text},
		{"elements", dict{"has-element": "x"}, keys},
		{"whole maps", dict{"not": dict{"equals": "${same}"}}, keys},
	} {
		inner := list{}
		for range 2000 {
			inner = append(inner, tc.check)
		}
		c, err := condition.Parse(dict{"any": inner})
		if err != nil {
			t.Fatal(err)
		}
		ok, err := c.Eval(expr.NewEnv(scope{"same": tc.subject}, nil), condition.Value(tc.subject))
		if ok || !errors.Is(err, expr.ErrLimit) {
			t.Errorf("%s: got %v, %v, want ErrLimit", tc.name, ok, err)
		}
	}
}
