// Package contracts has what the worker and its clients agree on: names with types. A wrong input,
// result or signal does not compile.
package contracts

import "github.com/droverhq/drover/contract"

// Letter is a mail.
type Letter struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

var (
	// SendMail is the activity.
	SendMail = contract.Activity[Letter, string]("send-mail")
	// Confirmed is the signal that the user has confirmed.
	Confirmed = contract.Signal[struct{}]("confirmed")
	// Signup is the workflow. It is given the user's address, and returns how it went.
	Signup = contract.Workflow[string, string]("signup", Confirmed)
)
