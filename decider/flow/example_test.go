package flow_test

import (
	"context"
	"fmt"
	"log"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/flow"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/schemas"
)

// only is a store of one flow.
type only struct{ definition *model.Definition }

func (o only) Definition(context.Context, string, string, string) (*model.Definition, string, error) {
	return o.definition, o.definition.Version(), nil
}

// A flow is a decider like any other, so a test needs no server.
func ExampleNew() {
	definition, err := flow.Parse("order.yaml", []byte(`
parameters:
  amount: {type: integer, required: true}
steps:
- let total = ${amount} * 2
- step: activity charge on PCI with total = ${total}
  on-error: retry limit 5 backoff 1s increasing 2x
- return ${output.receipt}
`), nil)
	if err != nil {
		log.Fatal(err)
	}
	d := flow.New(only{definition}, nil) // and then worker.Register("order", d)

	t, err := decider.NewTask(schemas.DecisionTask{
		WorkflowID: "order-7", Run: "1", Type: "order", StartedID: 3,
		Events: []schemas.Event{
			{ID: 1, Attributes: &schemas.WorkflowStarted{Input: schemas.Payload(`{"amount": 21}`)}},
			{ID: 2, Attributes: &schemas.DeciderScheduled{}},
			{ID: 3, Attributes: &schemas.DeciderStarted{ScheduledEventID: 2}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	decisions, err := d.Decide(context.Background(), t)
	if err != nil {
		log.Fatal(err)
	}
	for _, one := range decisions {
		a := one.Attributes.(*schemas.ScheduleActivity)
		fmt.Println(one.Type(), a.ActivityID, a.ActivityType, a.List, string(a.Input))
	}
	// Output:
	// ScheduleActivity 1#1 charge PCI {"total":42}
}

// Errors have a place and a way out.
func ExampleParse() {
	_, err := flow.Parse("order.yaml", []byte("steps:\n- sleep 5 parsecs\n"), nil)
	fmt.Println(err)
	// Output:
	// order.yaml:2:11: the duration "5 parsecs": "parsecs" is no unit (units are ns, us, ms, s, m, h, d, w and their long names)
	//     1 | steps:
	//     2 | - sleep 5 parsecs
	//       |           ^
}
