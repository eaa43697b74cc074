package main

import (
	"encoding/json"

	"github.com/droverhq/drover/schemas"
)

// What deciders, activities and customers have in common: names, inputs and results. They end up in histories, so that
// old ones stay readable only while names stay as they are.

// The workflow types.
const (
	typeOrder   = "order"
	typePayment = "payment"
)

// paymentSuffix makes the workflow id of a payment from that of its order.
const paymentSuffix = "-payment"

// The task lists. Whoever works on listPCI works on nothing else, see pci.go.
const (
	listShop = "shop"
	listPCI  = "PCI"
)

// The activity types. An order has at most one of each, so that they are the activity ids too.
const (
	actReserve = "reserve" // take the goods off the shelf, for this order
	actRelease = "release" // put them back
	actShip    = "ship"    // hand them to the carrier
	actAlert   = "alert"   // tell a human
	actCharge  = "charge"  // take the money: list PCI
	actRefund  = "refund"  // give it back: list PCI
)

// The timers of an order.
const (
	timerApproval = "approval" // how long somebody may think about a large order
	timerWindow   = "window"   // how long the customer may cancel
)

// The signals that an order takes.
const (
	signalApprove = "approve" // with an approval
	signalCancel  = "cancel"
)

// Reasons for which activities and workflows fail.
const (
	reasonOutOfStock  = "out-of-stock"
	reasonRejected    = "rejected"
	reasonNoApproval  = "not-approved-in-time"
	reasonDeclined    = "card-declined"
	reasonBank        = "bank-unreachable"
	reasonNoCardDesk  = "no-card-worker"
	reasonUnclear     = "payment-unclear"
	reasonNoAddress   = "address-unknown"
	reasonNoSuchGoods = "no-such-goods"
)

// order is the input of a workflow of type "order", and of the activities of the shop.
type order struct {
	Item   string `json:"item"`
	Amount int    `json:"amount"` // in cents
	// Card is a token that only the bank understands. The number of a card has no place in a history.
	Card    string `json:"card"`
	Address string `json:"address"`
	// Limit is the largest amount in cents that needs nobody's approval, Patience how long the approval of a larger one is
	// waited for, and Window how long the customer may cancel. They travel with the order: a change of the shop's rules
	// must not change orders that are under way.
	Limit    int              `json:"limit"`
	Patience schemas.Duration `json:"patience"`
	Window   schemas.Duration `json:"window"`
}

// approval is the input of the signal "approve".
type approval struct {
	By string `json:"by"`
	OK bool   `json:"ok"`
}

// payment is the input of a workflow of type "payment" and of the activities of the list PCI.
type payment struct {
	Order  string `json:"order"`
	Amount int    `json:"amount"`
	Card   string `json:"card"`
}

// receipt is the result of a charge, of a payment and of a refund.
type receipt struct {
	Number string `json:"number"`
}

// alarm is the input of the activity "alert".
type alarm struct {
	Order string `json:"order"`
	Text  string `json:"text"`
}

// entry is what a marker of an order holds: the event that completed the step, and what there is to say about it.
type entry struct {
	Event int64  `json:"event"`
	Note  string `json:"note,omitempty"`
}

// decode reads a payload, leaving the zero value where there is none or where it is something else: what strangers sent must
// not make a decider fail for ever.
func decode[T any](p schemas.Payload) (v T) {
	if json.Unmarshal(p, &v) != nil {
		var zero T
		return zero
	}
	return v
}
