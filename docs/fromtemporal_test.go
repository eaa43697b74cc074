package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/droverhq/drover/internal/typecheck"
)

// ours is what the code of the guide has around it.
const ours = `package code

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
)

type (
	Order   struct{ ID string }
	Receipt struct{ Number int }
	State   struct{ Rates []float64 }
)

var (
	Refund     = contract.Activity[Order, Receipt]("refund")
	CheckFraud = contract.Activity[Order, bool]("check-fraud")
	Poll       = contract.Workflow[State, State]("poll")
)

func charge(context.Context, Order) (r Receipt, err error) { return r, err }

func rate(context.Context, string) (r float64, err error) { return r, err }
`

// Our side of the code in the guide compiles.
func TestFromTemporal(t *testing.T) {
	c := typecheck.New(t, "context", "errors", "time", "github.com/droverhq/drover", "github.com/droverhq/drover/activity",
		"github.com/droverhq/drover/contract", "github.com/droverhq/drover/decider/workflow")
	blocks := regexp.MustCompile("(?s)```go\n// (Temporal|Drover)\n(.*?)```").FindAllStringSubmatch(read(t, "guides/from-temporal.md"), -1)
	var source strings.Builder
	source.WriteString(ours)
	for n, b := range blocks {
		if want := []string{"Temporal", "Drover"}[n%2]; b[1] != want {
			t.Fatalf("block %d is of %s, want %s: they stand in pairs", n+1, b[1], want)
		}
		if n%2 == 1 {
			source.WriteString(b[2])
		}
	}
	if len(blocks) < 10 {
		t.Fatalf("the guide has %d blocks of code", len(blocks))
	}
	for _, e := range c.Errors(t, source.String()) {
		t.Error(e)
	}
}
