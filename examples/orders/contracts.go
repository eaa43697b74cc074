package main

import (
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/schemas"
)

// The task lists. Whoever works on listPCI works on nothing else, see pci.go.
const (
	listShop = "shop"
	listPCI  = "PCI"
)

// Whatever fails otherwise than by a fault is tried again, for as long as it takes: an outage is no
// reason to lose an order. So all activities may be repeated: they are told which order it is.
var again = contract.Retry(schemas.RetryPolicy{
	InitialInterval: schemas.Seconds(0.2), MaximumInterval: schemas.Seconds(60),
})

// The activities.
var (
	// Reserve takes the goods off the shelf, for an order; Release puts them back, if they are off.
	Reserve = contract.Activity[Order, struct{}]("reserve", contract.List(listShop), again)
	Release = contract.Activity[Order, struct{}]("release", contract.List(listShop), again)
	// Ship hands the goods to the carrier.
	Ship = contract.Activity[Order, struct{}]("ship", contract.List(listShop), again)
	// Charge takes the money, and Refund gives it back.
	Charge = contract.Activity[Payment, Receipt]("charge", contract.List(listPCI), again)
	Refund = contract.Activity[Payment, Receipt]("refund", contract.List(listPCI), again)
)

// The workflows, and the signal with which somebody approves a large order or does not.
var (
	Approve = contract.Signal[Approval]("approve")
	Deliver = contract.Workflow[Order, Receipt]("order", Approve)
	Pay     = contract.Workflow[Payment, Receipt]("payment")
)

// The faults: why an order is not delivered.
var (
	NoSuchGoods = contract.Fault[string]("no-such-goods")
	OutOfStock  = contract.Fault[string]("out-of-stock")
	NotApproved = contract.Fault[struct{}]("not-approved-in-time")
	Rejected    = contract.Fault[Approval]("rejected")
	Declined    = contract.Fault[struct{}]("card-declined")
	NoAddress   = contract.Fault[struct{}]("address-unknown")
)

// Order is what a customer wants.
type Order struct {
	Item   string `json:"item"`
	Amount int    `json:"amount"` // in cents
	// Card is a token that only the bank understands. The number of a card has no place in a history.
	Card    string `json:"card"`
	Address string `json:"address"`
	// Limit is the largest amount in cents that needs nobody's approval, Patience how long the
	// approval of a larger one is waited for, and Window how long the customer may change their
	// mind. They travel with the order: a change of the shop's rules must not change orders that are
	// under way.
	Limit    int              `json:"limit"`
	Patience schemas.Duration `json:"patience"`
	Window   schemas.Duration `json:"window"`
}

// Approval is somebody's answer.
type Approval struct {
	By string `json:"by"`
	OK bool   `json:"ok"`
}

// Payment is what is taken from a card, for an order.
type Payment struct {
	Order  string `json:"order"`
	Amount int    `json:"amount"`
	Card   string `json:"card"`
}

// Receipt says that money was taken or given back.
type Receipt struct {
	Number string `json:"number"`
}
