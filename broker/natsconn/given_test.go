package natsconn_test

import (
	"testing"

	"github.com/droverhq/drover/broker/natsconn"
)

// E3: what is refused where requests are heard.
func TestGiven(t *testing.T) {
	for name, tt := range map[string]struct {
		reply string
		h     natsconn.Header
		given bool
	}{
		"no reply":              {},
		"an inbox":              {reply: "_INBOX.a.b", h: natsconn.Header{"Drover-Verb": {"start"}}},
		"a delivery":            {reply: "$JS.ACK.drover-default-tasks-main.workers.1.1.1.1.0", given: true},
		"one of a domain":       {reply: "$JS.ACK.hub.ABC.drover-default-tasks-main.workers.1.1.1.1.0.x", given: true},
		"a stored message":      {h: natsconn.Header{"Nats-Stream": {"KV_drover-default-state"}}, given: true},
		"a status":              {h: natsconn.Header{"Status": {"404"}}, given: true},
		"one of another stream": {h: natsconn.Header{"Nats-Stream": {"shop"}}, given: true},
	} {
		if got := natsconn.Given(tt.reply, tt.h); (got != "") != tt.given {
			t.Errorf("%s: got %q, want that it is given out: %v", name, got, tt.given)
		}
	}
	for stream, drovers := range map[string]bool{"drover-default-tasks-main": true, "KV_drover-nodes": true, "OBJ_drover-default-payloads": true, "shop": false, "KV_shop": false} {
		if got := natsconn.GivenOfDrover(natsconn.Header{"Nats-Stream": {stream}}); (got != "") != drovers {
			t.Errorf("a message of stream %s: got %q, want that it is Drover's: %v", stream, got, drovers)
		}
	}
}

func TestGivenBody(t *testing.T) {
	const task = `{"namespace":"default","workflowId":"o","scheduledEventId":5,"token":"r1.5.1","report":"drover.default.in.0.o.act.main","beat":"drover.default.beat.0.o.main"`
	for body, given := range map[string]bool{
		task + "}":                   true,
		task + `,"kind":"success"}`:  false, // a worker that sends all of its task with the outcome
		`{"token":"t","details":{}}`: false,
		`{"input":` + task + "}}":    false,
		`{"stream":"s","seq":1}`:     true,
		`{"type":"io.nats.jetstream.api.v1.stream_info_response"}`: true,
		`{"type":"order"}`: false,
		"":                 false,
		"\x01\x80":         false,
	} {
		if got := natsconn.GivenBody([]byte(body)); (got != "") != given {
			t.Errorf("%s: got %q, want that it is nobody's request: %v", body, got, given)
		}
	}
}
