// Package contract declares what workflows, workers and clients agree on: names with types.
//
// A contract is declared once, as a variable of a package that all who use it import:
//
//	var (
//		Charge   = contract.Activity[Payment, Receipt]("charge", contract.List("PCI"))
//		Approve  = contract.Signal[Approval]("approve")
//		Process  = contract.Workflow[Order, Receipt]("order", Approve)
//		Declined = contract.Fault[Decline]("declined")
//	)
//
// Then the wrong input, result or signal does not compile, and a name stands in one place.
//
// Invariants:
//
//   - A mistake of the program panics when it is declared, as with [regexp.MustCompile]: a bad
//     name, options that contradict each other, a type that JSON cannot hold. The text names the
//     field and the way out.
//   - Values travel as JSON, as in packages activity and decider: a [schemas.Payload] and []byte
//     are taken as they are, struct{} means none, and an empty payload is the zero value.
//   - An error about a value names the contract, the Go type and the field.
//   - A contract never changes. It may be used from any number of goroutines.
//
// The package knows no connection and no worker. It imports package schemas only.
package contract
