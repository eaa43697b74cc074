package contract

import (
	"fmt"

	"github.com/droverhq/drover/schemas"
)

// SignalOf is the contract of a signal; see [Signal].
type SignalOf[T any] struct{ name string }

// Signal declares the signal of that name, 1 to [schemas.MaxIDLen] bytes. It carries a T.
//
// Signal panics on mistakes of the program.
func Signal[T any](name string) *SignalOf[T] {
	s := &SignalOf[T]{name: name}
	must(s.of(), checkName(name, schemas.MaxIDLen))
	must(s.of(), checkType[T]("value"))
	return s
}

// Name is the name of the signal.
func (s *SignalOf[T]) Name() string { return s.name }

// Encode encodes what the signal carries.
func (s *SignalOf[T]) Encode(v T) (schemas.Payload, error) { return encode(s.of(), "value", v) }

// Decode decodes what [SignalOf.Encode] has encoded.
func (s *SignalOf[T]) Decode(p schemas.Payload) (T, error) { return decode[T](s.of(), "value", p) }

func (s *SignalOf[T]) message() {}

func (s *SignalOf[T]) of() string { return fmt.Sprintf("signal %q", s.name) }
