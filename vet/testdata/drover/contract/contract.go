// Package contract has the names that tests need.
package contract

type ActivityOf[In, Out any] struct{}

func Activity[In, Out any](string) *ActivityOf[In, Out] { return nil }
