package expr_test

import (
	"fmt"

	"github.com/droverhq/drover/decider/flow/expr"
)

func ExampleParseLet() {
	x, err := expr.ParseLet("${count} ?? 0")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(x.Eval(expr.NewEnv(expr.Vars{}, nil)))
	fmt.Println(x.Eval(expr.NewEnv(expr.Vars{"count": int64(41)}, nil)))

	_, err = expr.ParseLet("Is it ready ? yes")
	fmt.Println(err)
	// Output:
	// 0 <nil>
	// 41 <nil>
	// let "Is it ready ? yes": the : of a ? is missing (at 17): write condition ? value : other; put the text in quotes if it is not meant to be computed
}

func ExampleParseChain() {
	c, err := expr.ParseChain(`split , | slice 0 -1 | join " and "`)
	if err != nil {
		fmt.Println(err)
		return
	}
	got, err := c.Apply(expr.NewEnv(nil, nil), "bread,butter,jam")
	fmt.Println(got.Value, err)
	// Output: bread and butter <nil>
}
