package schemas_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
)

// E6: a JSON body with a field that there is not is refused by its name, at any depth, with the one that
// was probably meant.
func TestStrict(t *testing.T) {
	timer := `{"token":"t","decisions":[{"type":"ScheduleTimer","attributes":%}]}`
	for _, tt := range []struct {
		v          any
		body, want string // "" if it is taken
	}{
		{
			&schemas.DecisionReply{}, strings.Replace(timer, "%", `{"timerId":"t","startToFireTimeot":"1h"}`, 1),
			`decisions[0].attributes.startToFireTimeot: unknown field "startToFireTimeot"; did you mean "startToFireTimeout"?`,
		},
		{&schemas.DecisionReply{}, strings.Replace(timer, "%", `{"timerId":"t","startToFireTimeout":"1h"}`, 1), ""},
		{&schemas.DecisionReply{}, strings.Replace(timer, "%", `{"TIMERID":"t","starttofiretimeout":60}`, 1), ""}, // as ever
		{&schemas.DecisionReply{}, strings.Replace(timer, "%", `null`, 1), ""},
		{&schemas.DecisionReply{}, `{"token":"t","decisons":[]}`, `did you mean "decisions"?`},
		{&schemas.DecisionReply{}, `{"token":"t","decisions":[{"typ":"ScheduleTimer"}]}`, `decisions[0].typ: unknown field "typ"; did you mean "type"?`},
		{&schemas.DecisionReply{}, `{"token":"t","decisions":[{"type":"CompleteWorkflow","attributes":{"result":{"anything":[{"goes":1}]}}}]}`, ""},
		{&schemas.DecisionReply{}, `{"token":"t","decisions":[{"type":"FromTheFuture","attributes":{"x":1}}]}`, ""}, // refused by its type
		{&schemas.DecisionReply{}, `{"token":"t","error":{"raeson":"r"}}`, `did you mean "reason"?`},
		{&schemas.DecisionReply{}, `{"token":"t","replay":{"nothingLikeIt":1}}`, `there are `},
		{&schemas.Report{}, `{"token":"t","kind":"success","reslut":1}`, `did you mean "result"?`},
		{&schemas.Report{}, `{"token":"t","kind":"success","result":{"reslut":1},"v":1}`, ""},
		{&schemas.Heartbeat{}, `{"token":"t","detials":1}`, `did you mean "details"?`},
		{&schemas.StartRequest{}, `{"type":"t","imput":1}`, `did you mean "input"?`},
		{&schemas.StartRequest{}, `{"type":"t","signal":{"nam":"s"}}`, `signal.nam: unknown field "nam"; did you mean "name"?`},
		{&schemas.StartRequest{}, `{"type":"t","attributes":{"any":"name"},"input":{"any":"name"}}`, ""},
		{&schemas.ListRequest{}, `{"stauts":"open"}`, `did you mean "status"?`},
		{&schemas.NamespaceRequest{}, `{"nmae":"x"}`, `did you mean "name"?`},
	} {
		err := schemas.UnmarshalStrict([]byte(tt.body), tt.v)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: got %v, want it taken", tt.body, err)
		case tt.want != "" && (!errors.Is(err, schemas.ErrUnknownField) || !errors.Is(err, schemas.ErrMalformed) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: got %v, want %s", tt.body, err, tt.want)
		}
	}
}

// Whatever this version writes in JSON it takes, and in msgpack any field is passed over.
func TestStrictTakesWhatIsWritten(t *testing.T) {
	for _, v := range []any{
		&schemas.DecisionReply{Decisions: []schemas.Decision{schemas.Decide(&schemas.ScheduleActivity{ActivityID: "a"})}},
		&schemas.Report{Kind: schemas.ReportSuccess, Result: schemas.Payload(`{"a":1}`)}, &schemas.Heartbeat{Token: "t"},
		&schemas.StartRequest{Type: "t"}, &schemas.ExecutionRequest{WorkflowID: "w"},
	} {
		body, err := schemas.MarshalJSON(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := schemas.CheckFields(body, v); err != nil {
			t.Errorf("%s: got %v", body, err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(body, &fields); err != nil {
			t.Fatal(err)
		}
		fields["later"] = json.RawMessage("1")
		later, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		if err := schemas.CheckFields(later, v); !errors.Is(err, schemas.ErrUnknownField) {
			t.Errorf("%s: got %v, want it refused", later, err)
		}
	}
	type later struct {
		schemas.Heartbeat
		Later int `json:"later"`
	}
	packed, err := schemas.Marshal(&struct {
		Token string `json:"token"`
		Later int    `json:"later"`
	}{"t", 1})
	if err != nil {
		t.Fatal(err)
	}
	var h schemas.Heartbeat
	if err := schemas.UnmarshalStrict(packed, &h); err != nil || h.Token != "t" {
		t.Errorf("msgpack: got %+v, %v, want the field passed over", h, err)
	}
	if err := schemas.UnmarshalStrict([]byte(`{"token":"t","later":1}`), &later{}); err != nil {
		t.Errorf("embedded: got %v", err)
	}
}

// E15: an id with a byte that is not UTF-8 would become another id.
func TestCheckUTF8(t *testing.T) {
	for body, want := range map[string]string{
		"{\"workflowId\":\"x\xff\",\"type\":\"t\"}":                     "workflowId: the byte 0xff at offset 16",
		"{\"workflowId\":\"x\",\"name\": \"a\xc3\",\"requestId\":\"\"}": "name: the byte 0xc3",
		"{\"workflowId\":\"x\",\"input\":{\"a\":\"\xfe\"}}":             "a: the byte 0xfe",
	} {
		if err := schemas.CheckUTF8([]byte(body)); !errors.Is(err, schemas.ErrMalformed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", body, err, want)
		}
	}
	for _, body := range []string{"", "{}", `{"workflowId":"xé\ufffd"}`, "\x81\xa1a\xff"} {
		if err := schemas.CheckUTF8([]byte(body)); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	}
}
