package flows

import (
	"strings"
	"text/template"

	"lib.example"

	"github.com/droverhq/drover/decider/workflow"
	"shop/helpers"
)

func calls(ctx workflow.Context, names []string) {
	_ = helpers.Name()                 // want `Name reaches os.Getenv \(helpers.go:\d+\): hand it over in the input`
	_ = helpers.Deep()                 // want `Deep reaches os.Getenv`
	_ = helpers.Of[int]{}.Now()        // want `Of.Now reaches time.Now`
	helpers.Count()                    // want `Count reaches a write to n, a variable of the package`
	_ = helpers.Any(nil)               // want `Any reaches an append to all in the order of a map`
	_ = helpers.Even(1)                // want `Even reaches time.Now`
	_ = local()                        // want `local reaches os.Getenv`
	_ = lib.Stamp("x")                 // want `Stamp reaches time.Now \(lib.go:\d+\)`
	_ = strings.Map(helpers.Rune, "x") // want `Rune reaches rand.Intn`

	// The standard library is not walked through: sdk-go#767.
	_ = template.Must(template.New("x").Parse("{{.}}")).Execute(new(strings.Builder), names)
	_ = lib.Cached("x")
	_ = helpers.Sorted(nil)
	_ = helpers.Logged()
	helpers.Locked()
	helpers.InWorkflow(ctx) // is found there
}

func local() string { return helpers.Name() } // want local:`os.Getenv at helpers.go:\d+`
