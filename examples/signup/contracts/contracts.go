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
	SendMail  = contract.Activity[Letter, string]("send-mail")
	Confirmed = contract.Signal[struct{}]("confirmed") // by the user
	Signup    = contract.Workflow[string, string]("signup", Confirmed)
)
