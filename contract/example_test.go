package contract_test

import (
	"errors"
	"fmt"

	"github.com/droverhq/drover/contract"
)

type (
	Payment struct{ Cents int }
	Receipt struct{ Number string }
	Decline struct{ Code int }
)

var (
	Charge   = contract.Activity[Payment, Receipt]("charge", contract.List("PCI"))
	Declined = contract.Fault[Decline]("declined")
)

// A fault is known again by its reason, whoever has sent it.
func ExampleFault() {
	activity := func(p Payment) (r Receipt, err error) {
		if p.Cents > 10_000 {
			return r, Declined.With(Decline{Code: 51})
		}
		return Receipt{Number: "r-1"}, nil
	}
	_, err := activity(Payment{Cents: 20_000})
	if d, ok := Declined.Details(err); ok {
		fmt.Println("declined with code", d.Code)
	}
	fmt.Println(errors.Is(err, Declined))
	// Output:
	// declined with code 51
	// true
}

func ExampleActivity() {
	decision, err := Charge.Schedule("charge#1", Payment{Cents: 100})
	fmt.Println(decision.ActivityType, decision.List, string(decision.Input), err)
	// Output: charge PCI {"Cents":100} <nil>
}
