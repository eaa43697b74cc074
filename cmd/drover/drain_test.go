package main

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

func TestS2_01DrainFromAnywhere(t *testing.T) {
	url, o := bare(t)
	o.Node = "one"
	one := serving(t, o)
	o.Node = "two"
	two := serving(t, o)
	on := against(url)
	work(t, url)
	on("drain", "nobody").want(t, exitFailed, "", `"nobody"`, "no node of that name", "--namespace")
	on("drain", "one", "--wait", "--reason", "new machine", "--drain-timeout", "1m").want(t, exitDone, "one has left\n")
	<-one.ended
	if one.err != nil {
		t.Fatalf("got %v, want a clean end", one.err)
	}
	if r := on("node", "list", "--json"); r.code != exitDone || strings.Contains(r.stdout, `"one"`) {
		t.Fatalf("got %+v, want no record of one that has left", r)
	}
	if r := on("start", "greet", "--id", "g", "--input", `"ox"`, "--wait"); r.code != exitDone || r.stdout != "\"hello ox\"\n" {
		t.Fatalf("got %+v, want the other node at work", r)
	}
	on("drain", "two", "--json").want(t, exitDone, `{"node":"two","status":"draining","gone":false}`+"\n")
	<-two.ended
	if two.err != nil {
		t.Fatalf("got %v, want a clean end", two.err)
	}
	died(t, url, "three")
	on("drain", "three").want(t, exitFailed, "", "does not listen", "drover node remove three")
}

// The NATS server of the node is gone with it, and the command still returns.
func TestDrainOfAServerOfItsOwn(t *testing.T) {
	s := serving(t, memoryServer())
	command("", "drain", s.Node, "--wait", "--nats", s.URL, "--timeout", "30s").want(t, exitDone, s.Node+" has left\n", "")
	<-s.ended
	if s.err != nil {
		t.Fatalf("got %v, want a clean end", s.err)
	}
}

// The streams of the node's own NATS server go before its connections. Whoever looks in between looks again.
func TestDrainLooksWhileTheStreamsGo(t *testing.T) {
	s := serving(t, memoryServer())
	conn := dialed(t, s.URL)
	list, err := registry(t, conn).List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("got %+v, %v, want one node", list, err)
	}
	d := &target{op: "drain", name: s.Node, conn: conn, register: registry(t, conn), node: &list[0], own: true}
	if err := conn.JetStream().DeleteStream(t.Context(), "KV_"+subject.BucketNodes); err != nil {
		t.Fatal(err)
	}
	if gone, err := d.gone(t.Context(), schemas.Control{}); gone || err != nil {
		t.Fatalf("got %v, %v while the server is there, want neither its end nor an error", gone, err)
	}
	s.end(t)
	if err := d.awaitEnd(t.Context(), schemas.Control{}); err != nil {
		t.Fatalf("got %v behind its end", err)
	}
}

// An order that a node does not understand changes nothing, and is answered.
func TestControlRefuses(t *testing.T) {
	s := serving(t, memoryServer())
	conn := dialed(t, s.URL)
	for _, tt := range []struct {
		body string
		want schemas.Code
	}{
		{"{", schemas.CodeInvalid},
		{"", schemas.CodeInvalid},
		{`{"v":1,"kind":"dance"}`, schemas.CodeInvalid},
		{`{"v":1,"kind":"cancel","token":"a.1.1"}`, schemas.CodeInvalid},
		{`{"v":1,"kind":"drain","timeout":"NONE"}`, schemas.CodeInvalid},
		{`{"v":1,"kind":"ack"}`, schemas.CodeConflict},
	} {
		m, err := conn.Request(t.Context(), "drover.default.control."+strings.ReplaceAll(s.Node, ".", "%2E"), nil, []byte(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		var a schemas.ControlAnswer
		if err := schemas.Unmarshal(m.Data, &a); err != nil || a.Node != s.Node || a.Status != schemas.NodeReady || a.Error == nil || a.Error.Code != tt.want {
			t.Errorf("%q: got %s, %v, want %s", tt.body, m.Data, err, tt.want)
		}
	}
	s.end(t)
}
