package schemas_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/droverhq/drover/schemas"
)

// laterEvent returns the msgpack of an event of a type that a later version may have.
func laterEvent(t *testing.T, attributes any) []byte {
	t.Helper()
	b, err := msgpack.Marshal([]any{7, "LaterEvent", int64(1714979289000000000), attributes})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func page(event []byte) []byte {
	body := append([]byte{schemas.Version, 0x82, 0xa3}, "run\xa1r\xa6events\x91"...)
	return append(body, event...)
}

func readPage(t *testing.T, body []byte) *schemas.HistoryResponse {
	t.Helper()
	got := &schemas.HistoryResponse{}
	if err := schemas.Unmarshal(body, got); err != nil {
		t.Fatalf("%v\n%q", err, body)
	}
	return got
}

func TestUnknownEventKeepsItsMsgpack(t *testing.T) {
	for name, attributes := range map[string]any{
		"map":         map[string]any{"a": 1, "deep": []any{1.5, "x", []byte{1}, nil, true}},
		"nil":         nil,
		"number 0x7b": 123, // the byte '{'
		"number 0x20": 32,  // the byte ' '
		"text":        `{"a":1}`,
		"bytes":       []byte("\xff"),
		"odd keys":    map[int]int{1: 2},
	} {
		t.Run(name, func(t *testing.T) {
			event := laterEvent(t, attributes)
			first := readPage(t, page(event))
			b, err := schemas.Marshal(first)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first, readPage(t, b)); diff != "" {
				t.Fatalf("the round trip changed it (-want +got):\n%s", diff)
			}
			u := first.Events[0].Attributes.(*schemas.Unknown)
			if u.Type != "LaterEvent" || !strings.HasSuffix(string(event), string(u.Raw)) || first.Events[0].Type().Known() {
				t.Fatalf("got %s %q of %q", u.Type, u.Raw, event)
			}
			b, err = schemas.MarshalJSON(first)
			if err != nil {
				t.Fatal(err)
			}
			if again := readPage(t, b); again.Events[0].ID != 7 || again.Events[0].Type() != "LaterEvent" {
				t.Fatalf("got %+v", again.Events[0])
			}
		})
	}
}

func TestUnknownEventIsReadable(t *testing.T) {
	for want, attributes := range map[string]any{
		`{"n":1,"list":["x",{"$text":"plain"},{"a":[1]}]}`: map[string]any{"n": 1, "list": []any{"x", []byte("plain"), []byte(`{"a":[1]}`)}},
		`null`:                      nil,
		`{"$bytes":"gQEC"}`:         map[int]int{1: 2},
		`{"$bytes":"y3/4AAAAAAAB"}`: msgpack.RawMessage("\xcb\x7f\xf8\x00\x00\x00\x00\x00\x01"), // not a number
	} {
		b, err := json.Marshal(readPage(t, page(laterEvent(t, attributes))).Events[0].Attributes)
		if err != nil {
			t.Fatal(err)
		}
		var got, wanted any
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

// What came as JSON stays the same JSON, also when it goes through msgpack on its way, and spoils nothing beside it.
func TestUnknownEventKeepsItsJSON(t *testing.T) {
	deep := strings.Repeat(`{"a":[`, 100) + strings.Repeat(`]}`, 100)
	for name, attributes := range map[string]string{
		"object": `{"a":1,"t":"2024-05-06T07:08:09Z","big":123456789012345678901234567890,"f":1.50}`,
		"array":  `[1,2]`, "text": `"x"`, "number": `7`, "null": `null`, "deep": deep, "form": `{"$text":"x"}`, "json form": `{"$json":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			body := `{"run":"r","events":[{"id":7,"type":"LaterEvent","time":"2024-05-06T07:08:09Z","attributes":` + attributes +
				`},{"id":8,"type":"Signal","time":"2024-05-06T07:08:09Z","attributes":{"signalName":"after"}}]}`
			first := readPage(t, []byte(body))
			packed, err := schemas.Marshal(first)
			if err != nil {
				t.Fatal(err)
			}
			second := readPage(t, packed)
			if diff := cmp.Diff(first, second); diff != "" {
				t.Fatalf("msgpack changed it (-want +got):\n%s", diff)
			}
			got, err := schemas.MarshalJSON(second)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != body {
				t.Fatalf("got  %s\nwant %s", got, body)
			}
		})
	}
}

func TestUnknownEventWithoutAttributes(t *testing.T) {
	first := readPage(t, []byte(`{"run":"r","events":[{"id":7,"type":"LaterEvent"}]}`))
	b, err := schemas.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	got, err := schemas.MarshalJSON(readPage(t, b))
	if err != nil || !strings.Contains(string(got), `"attributes":null`) {
		t.Fatalf("got %s, %v", got, err)
	}
}

func TestUnknownEventRefusesWhatIsNoValue(t *testing.T) {
	for _, raw := range []string{"\x01\x02", "\xdd\xff\xff\xff\xff", `{"a":1}`} {
		e := schemas.Event{ID: 1, Attributes: &schemas.Unknown{Type: "LaterEvent", Raw: msgpack.RawMessage(raw)}}
		if b, err := schemas.Marshal(&schemas.HistoryResponse{Events: []schemas.Event{e}}); err == nil {
			t.Errorf("%q was encoded as %q", raw, b)
		}
	}
}

// A decision of an unknown type is refused by its name, so the name is what must be kept.
func TestUnknownDecisionKeepsItsName(t *testing.T) {
	packed, err := msgpack.Marshal(map[string]any{"token": "t", "decisions": []any{
		map[string]any{"attributes": map[string]any{"x": 1}, "type": "LaterDecision"}, map[string]any{"type": "ResetReplayPoints"}, map[string]any{},
	}})
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(`{"token":"t","decisions":[{"attributes":{"x":1},"type":"LaterDecision"},{"type":"ResetReplayPoints"},{}]}`)
	for _, body := range [][]byte{append([]byte{schemas.Version}, packed...), text} {
		var reply schemas.DecisionReply
		if err := schemas.Unmarshal(body, &reply); err != nil {
			t.Fatal(err)
		}
		want := []schemas.Decision{
			{Attributes: &schemas.UnknownDecision{Type: "LaterDecision"}},
			{Attributes: &schemas.ResetReplayPoints{}},
			{Attributes: &schemas.UnknownDecision{}},
		}
		if diff := cmp.Diff(want, reply.Decisions); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

// The keys of a decision may come in any order, and attributes before their type are the usual one in sorted maps.
func TestDecisionKeysInAnyOrder(t *testing.T) {
	want := schemas.Decide(&schemas.CancelTimer{TimerID: "T"})
	for _, body := range []string{
		"\x82\xa4type\xabCancelTimer\xaaattributes\x81\xa7timerId\xa1T",
		"\x83\xaaattributes\x81\xa7timerId\xa1T\xa1x\x92\x01\x02\xa4type\xabCancelTimer",
	} {
		var reply schemas.DecisionReply
		if err := schemas.Unmarshal([]byte("\x01\x81\xa9decisions\x91"+body), &reply); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]schemas.Decision{want}, reply.Decisions); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

// A decision whose first field is another than its type has no type, whatever stands there.
func TestATypeIsReadFromItsField(t *testing.T) {
	body := append([]byte{schemas.Version}, "\x82\xa5token\xa1t\xa9decisions\x91\x82\xa4kind\xb0CompleteWorkflow\xaaattributes\x80"...)
	var reply schemas.DecisionReply
	if err := schemas.Unmarshal(body, &reply); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]schemas.Decision{{Attributes: &schemas.UnknownDecision{}}}, reply.Decisions); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}
