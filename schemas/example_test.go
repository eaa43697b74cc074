package schemas_test

import (
	"errors"
	"fmt"

	"github.com/droverhq/drover/schemas"
)

func ExampleUnmarshal() {
	// A decider in another language answers in JSON …
	var reply schemas.DecisionReply
	err := schemas.Unmarshal([]byte(`{"token":"t","decisions":[{"type":"ScheduleTimer","attributes":{"timerId":"T","startToFireTimeout":"1m30s"}}]}`), &reply)
	fmt.Println(reply.Decisions[0].Type(), reply.Decisions[0].Attributes.(*schemas.ScheduleTimer).StartToFireTimeout, err)
	// … and bytes that are no message are told apart from a broken reader.
	err = schemas.Unmarshal([]byte("\x01\xdd\xff\xff\xff\xff"), &reply)
	fmt.Println(errors.Is(err, schemas.ErrMalformed))
	// Output:
	// ScheduleTimer 1m30s <nil>
	// true
}

func ExampleMarshalJSON() {
	e := schemas.Event{ID: 5, Time: 1714979289000000000, Attributes: &schemas.WorkflowSuccess{Result: schemas.Text("done"), DeciderCompletedEventID: 4}}
	b, _ := schemas.MarshalJSON(e)
	fmt.Println(string(b))
	// Output: {"id":5,"type":"WorkflowSuccess","time":"2024-05-06T07:08:09Z","attributes":{"result":{"$text":"done"},"deciderCompletedEventId":4}}
}

func ExamplePayload() {
	for _, p := range []schemas.Payload{schemas.Text(`{"n":1}`), schemas.Text("plain"), {0xff, 0x00}} {
		b, _ := p.MarshalJSON()
		fmt.Println(string(b))
	}
	// Output:
	// {"n":1}
	// {"$text":"plain"}
	// {"$bytes":"/wA="}
}
