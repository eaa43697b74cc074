package jsonschema_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/jsonschema"
)

// compile reads a file as any validator would, formats and encodings included.
func compile(t *testing.T, message string) *validator.Schema {
	t.Helper()
	b, err := os.ReadFile(message + ".json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := validator.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := validator.NewCompiler()
	c.AssertFormat()
	c.AssertContent()
	if err := c.AddResource(message+".json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(message + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(s *validator.Schema, body []byte) error {
	v, err := validator.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// messageOf names the message of a golden vector.
func messageOf(vector string) string {
	switch name := strings.TrimSuffix(filepath.Base(vector), ".json"); {
	case strings.HasPrefix(name, "record-"):
		return "Record"
	case strings.HasPrefix(name, "report-"):
		return "Report"
	case strings.HasPrefix(name, "decision-reply"), name == "decisions":
		return "DecisionReply"
	case strings.HasPrefix(name, "outcome-answer"):
		return "OutcomeAnswer"
	case name == "events":
		return "HistoryResponse"
	default: // start-request is a StartRequest
		var message strings.Builder
		for part := range strings.SplitSeq(name, "-") {
			message.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
		return message.String()
	}
}

func TestGoldenVectors(t *testing.T) {
	vectors, err := filepath.Glob("../testdata/golden/*.json")
	if err != nil || len(vectors) == 0 {
		t.Fatalf("got %d vectors and %v, want some", len(vectors), err)
	}
	for _, file := range vectors {
		t.Run(filepath.Base(file), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate(compile(t, messageOf(file)), body); err != nil {
				t.Fatalf("%#v", err)
			}
		})
	}
}

// Whatever the encoder writes is valid.
func TestEncodedMessagesAreValid(t *testing.T) {
	for _, m := range jsonschema.Messages() {
		t.Run(m.Name(), func(t *testing.T) {
			s := compile(t, m.Name())
			check := func(v reflect.Value) error {
				body, err := schemas.MarshalJSON(v.Interface())
				if err == nil {
					err = validate(s, body)
				}
				if err != nil {
					return fmt.Errorf("%s: %#v", body, err)
				}
				return nil
			}
			rapid.Check(t, func(r *rapid.T) {
				v := reflect.New(m)
				draw(r, v.Elem(), m.Name())
				if err := check(v); err != nil {
					r.Fatal(err)
				}
			})
		})
	}
}

// A schema that takes everything would pass the tests above.
func TestSchemasRefuse(t *testing.T) {
	for _, tt := range []struct{ name, message, good, bad string }{
		{"missing field", "SignalRequest", `{"workflowId":"w","name":"n"}`, `{"workflowId":"w"}`},
		{"version", "Alarm", `{"v":1,"run":"r","due":null}`, `{"v":2,"run":"r","due":null}`},
		{"text for a number", "StartRequest", `{"type":"t","taskPriority":1}`, `{"type":"t","taskPriority":"1"}`},
		{"duration", "StartRequest", `{"type":"t","taskStartToCloseTimeout":"1m30s"}`, `{"type":"t","taskStartToCloseTimeout":"soon"}`},
		{"duration without unit", "StartRequest", `{"type":"t","taskStartToCloseTimeout":90.5}`, `{"type":"t","taskStartToCloseTimeout":"90"}`},
		{"negative duration", "StartRequest", `{"type":"t","taskStartToCloseTimeout":"NONE"}`, `{"type":"t","taskStartToCloseTimeout":-1}`},
		{"time", "Alarm", `{"run":"r","due":"2024-05-06T07:08:09.123456789Z"}`, `{"run":"r","due":"tomorrow"}`},
		{"kind of a report", "Report", `{"kind":"success","token":"t"}`, `{"kind":"sucess","token":"t"}`},
		{"policy", "StartRequest", `{"type":"t","idReusePolicy":"REJECT"}`, `{"type":"t","idReusePolicy":"NEVER"}`},
		{"base64", "DownloadResponse", `{"data":"aGk="}`, `{"data":"hi!"}`},
		{"payload text", "SignalRequest", `{"workflowId":"w","name":"n","input":{"$text":"t"}}`, `{"workflowId":"w","name":"n","input":{"$text":1}}`},
		{"payload bytes", "SignalRequest", `{"workflowId":"w","name":"n","input":{"$bytes":"/w=="}}`, `{"workflowId":"w","name":"n","input":{"$bytes":"%"}}`},
		{
			"payload reference", "SignalRequest", `{"workflowId":"w","name":"n","input":{"$ref":"#/a","$text":1}}`,
			`{"workflowId":"w","name":"n","input":{"$ref":{"object":"o"}}}`,
		},
		{"decision", "DecisionReply", `{"token":"t","decisions":[{"type":"ResetReplayPoints"}]}`, `{"token":"t","decisions":[{"type":"FlyAway"}]}`},
		{
			"attributes of a decision", "DecisionReply", `{"token":"t","decisions":[{"type":"CancelTimer","attributes":{"timerId":"x"}}]}`,
			`{"token":"t","decisions":[{"type":"CancelTimer"}]}`,
		},
		{
			"attributes of an event", "HistoryResponse",
			`{"run":"r","events":[{"id":1,"type":"FromTheFuture","time":null,"attributes":7}]}`,
			`{"run":"r","events":[{"id":1,"type":"Marker","time":null,"attributes":{"markerName":7}}]}`,
		},
		{"unknown field", "Alarm", `{"run":"r","due":null,"later":true}`, `[]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := compile(t, tt.message)
			if err := validate(s, []byte(tt.good)); err != nil {
				t.Fatalf("%s: %#v", tt.good, err)
			}
			if err := validate(s, []byte(tt.bad)); err == nil {
				t.Fatalf("%s: got nil, want a refusal", tt.bad)
			}
		})
	}
}
