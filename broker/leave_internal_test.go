package broker

import (
	"reflect"
	"testing"

	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/schemas"
)

// What an owner has not answered when it leaves goes to the next one as a message, a start as well that never was one.
func TestRequestsGoOn(t *testing.T) {
	start := &schemas.StartRequest{
		V: schemas.Version, WorkflowID: "o", Run: "R", Type: "order", RequestID: "once", Input: schemas.Payload(`{"n":1}`), TagList: []string{"a"},
		ReplyTo: "reply.1", Content: schemas.ContentTypeMsgpack,
	}
	said := *start
	var all requests
	message := post.Msg{Reply: "reply.2", Header: post.Header{verbHeader: {"describe"}}, Data: []byte(`{"workflowId":"o"}`)}
	if !all.add("reply.1", request{start: start}) || !all.add(message.Reply, request{Msg: message}) {
		t.Fatal("a request was not taken")
	}
	left := all.take()
	if all.add("reply.3", request{Msg: message}) {
		t.Error("a request was taken although the partition is another's by now")
	}
	r := left["reply.2"]
	if h, body, err := r.message(); err != nil || !reflect.DeepEqual(h, message.Header) || string(body) != string(message.Data) {
		t.Errorf("got %v, %s and %v, want the message", h, body, err)
	}
	r = left["reply.1"]
	h, body, err := r.message()
	var got schemas.StartRequest
	if err == nil {
		err = schemas.Unmarshal(body, &got)
	}
	if err != nil || h.Get(verbHeader) != kindStart || h.Get(schemas.ContentTypeHeader) != schemas.ContentTypeMsgpack {
		t.Fatalf("got %v, %v; want a start that is answered in msgpack", h, err)
	}
	if got.ReplyTo, got.Content = said.ReplyTo, said.Content; !reflect.DeepEqual(got, said) {
		t.Errorf("got %+v, want %+v", got, said)
	}
}
