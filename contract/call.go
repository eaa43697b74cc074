package contract

import (
	"fmt"
	"regexp"

	"github.com/droverhq/drover/schemas"
)

// MaxNameLen bounds the names of activities and workflows, in bytes. Calls of them are told apart
// by a path before the name and a number after it, such as 1.2/charge#3, and an id has
// [schemas.MaxIDLen] bytes.
const MaxNameLen = 200

// Callable is what a workflow may call: an [ActivityOf] or, as a child, a [WorkflowOf].
type Callable[In, Out any] interface {
	// Name is the type of the activity or workflow.
	Name() string
	// EncodeInput encodes what it is called with.
	EncodeInput(In) (schemas.Payload, error)
	// DecodeResult decodes what it has returned.
	DecodeResult(schemas.Payload) (Out, error)

	callable() // no other type can be called
}

// call is the common part of activities and workflows.
type call[In, Out any] struct {
	name string
	of   string // names the contract in errors
}

func declare[In, Out any](kind schemas.TypeKind, name string) call[In, Out] {
	c := call[In, Out]{name: name, of: fmt.Sprintf("%s %q", kind, name)}
	must(c.of, checkName(name, MaxNameLen))
	if looksLikePath.MatchString(name) {
		must(c.of, "the name begins like the path of a coroutine, and calls of it could be "+
			"taken for those of another: put a letter first")
	}
	must(c.of, checkType[In]("input"))
	must(c.of, checkType[Out]("result"))
	return c
}

// looksLikePath tells names that begin as the ids of calls in coroutines do.
var looksLikePath = regexp.MustCompile(`^u?[0-9]+(\.[0-9]+)*/`)

// Name is the type under which workers are asked.
func (c *call[In, Out]) Name() string { return c.name }

// EncodeInput encodes an input.
func (c *call[In, Out]) EncodeInput(in In) (schemas.Payload, error) {
	return encode(c.of, "input", in)
}

// DecodeInput decodes what [ActivityOf.EncodeInput] has encoded.
func (c *call[In, Out]) DecodeInput(p schemas.Payload) (In, error) {
	return decode[In](c.of, "input", p)
}

// EncodeResult encodes a result.
func (c *call[In, Out]) EncodeResult(out Out) (schemas.Payload, error) {
	return encode(c.of, "result", out)
}

// DecodeResult decodes what [ActivityOf.EncodeResult] has encoded.
func (c *call[In, Out]) DecodeResult(p schemas.Payload) (Out, error) {
	return decode[Out](c.of, "result", p)
}

func (c *call[In, Out]) callable() {}

// must panics if there is a problem with a declaration.
func must(of, problem string) {
	if problem != "" {
		panic(fmt.Sprintf("contract: %s: %s", of, problem))
	}
}

// checkName returns what is wrong with a name, or nothing.
func checkName(name string, most int) string {
	if len(name) > most {
		return fmt.Sprintf("the name has %d bytes; want 1 to %d", len(name), most)
	}
	if err := schemas.ValidateID("the name", name); err != nil {
		return err.Error()
	}
	return ""
}
