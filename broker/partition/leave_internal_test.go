package partition

import (
	"reflect"
	"testing"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
)

// What an owner has not answered when it leaves goes to the next one, and nothing is taken after that.
func TestRequestsGoOn(t *testing.T) {
	var all requests
	message := natsconn.Msg{Reply: "reply.2", Header: natsconn.Header{actor.VerbHeader: {"describe"}}, Data: []byte(`{"workflowId":"o"}`)}
	if !all.add(message) || all.none() {
		t.Fatal("a request was not taken")
	}
	left := all.take()
	if all.add(message) {
		t.Error("a request was taken although the partition is another's by now")
	}
	if got := left[message.Reply]; len(left) != 1 || !reflect.DeepEqual(got, message) {
		t.Errorf("got %+v, want the message alone", left)
	}
}
