package contract_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/internal/typecheck"
)

// prelude has one contract of each kind, and a call as workflows, workers and clients make it.
const prelude = `package code

import (
	"errors"

	"github.com/droverhq/drover/contract"
)

type (
	Order    struct{ ID string }
	Receipt  struct{ Number int }
	Approval struct{ By string }
	Decline  struct{ Code int }
)

var (
	Charge   = contract.Activity[Order, Receipt]("charge", contract.List("PCI"))
	Approve  = contract.Signal[Approval]("approve")
	Process  = contract.Workflow[Order, Receipt]("order", Approve)
	Declined = contract.Fault[Decline]("declined")
)

func call[In, Out any](c contract.Callable[In, Out], in In) (out Out, err error) { return }
func implement[In, Out any](c *contract.ActivityOf[In, Out], fn func(In) (Out, error)) {}
func send[T any](s *contract.SignalOf[T], v T) {}
func is(err error) bool { return errors.Is(err, Declined) }

`

// What is not meant does not compile; what is does, and without naming a type.
func TestMisuseDoesNotCompile(t *testing.T) {
	c := typecheck.New(t, "errors", "github.com/droverhq/drover/contract")
	for _, tc := range []struct{ name, code, want string }{
		{"call", `func f() (Receipt, error) { return call(Charge, Order{}) }`, ""},
		{"child", `func f() (Receipt, error) { return call(Process, Order{}) }`, ""},
		{"implement", `func f() { implement(Charge, func(Order) (r Receipt, err error) { return }) }`, ""},
		{"send", `func f() { send(Approve, Approval{}) }`, ""},
		{"fault", `func f() error { return Declined.With(Decline{Code: 51}) }`, ""},
		{"bare fault", `func f() error { return Declined }`, ""},
		{"details", `func f(err error) (Decline, bool) { return Declined.Details(err) }`, ""},

		{"wrong input", `func f() { call(Charge, Receipt{}) }`, "does not match inferred type"},
		{"pointer to the input", `func f() { call(Charge, &Order{}) }`, "does not match inferred type"},
		{"wrong result", `func f() { n, _ := call(Charge, Order{}); var _ int = n }`, "cannot use n"},
		{"calling a signal", `func f() { call(Approve, Approval{}) }`, "does not match"},
		{"calling a name", `func f() { call("charge", Order{}) }`, "cannot infer Out"},
		{"calling a function", `func f() { call(func(Order) Receipt { return Receipt{} }, Order{}) }`, "does not match"},
		{"a message of one's own", `type other struct{}
func (other) Name() string { return "" }
var _ contract.Message = other{}`, "missing method message"},
		{"implementing with another input", `func f() { implement(Charge, func(Receipt) (r Receipt, err error) { return }) }`, "does not match inferred type"},
		{"implementing with another result", `func f() { implement(Charge, func(Order) (n int, err error) { return }) }`, "does not match inferred type"},
		{"implementing a workflow as an activity", `func f() { implement(Process, func(Order) (r Receipt, err error) { return }) }`, "does not match"},
		{"signal with another value", `func f() { send(Approve, Order{}) }`, "does not match inferred type"},
		{"sending an activity", `func f() { send(Charge, Order{}) }`, "does not match"},
		{"accepting an activity", `var _ = contract.Workflow[Order, Receipt]("b", Charge)`, "missing method message"},
		{"details of another type", `func f() error { return Declined.With(Order{}) }`, "cannot use Order{}"},
		{"an activity as an error", `func f(err error) bool { return errors.Is(err, Charge) }`, "missing method Error"},
		{"a text as an option", `var _ = contract.Activity[Order, Receipt]("b", "PCI")`, `cannot use "PCI"`},
		{"no types", `var _ = contract.Activity("b")`, "cannot infer In"},
		{"changing a contract", `func f() { Charge.name = "other" }`, "Charge.name undefined"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := c.Errors(t, prelude+tc.code)
			if tc.want == "" && len(got) > 0 {
				t.Fatalf("it does not compile: %q", got)
			}
			if tc.want != "" && (len(got) == 0 || !strings.Contains(got[0], tc.want)) {
				t.Fatalf("got %q, want an error with %q", got, tc.want)
			}
		})
	}
}
