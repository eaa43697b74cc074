package main

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/cmd/drover/cli"
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
	on("drain", "nobody").want(t, cli.ExitFailed, "", `"nobody"`, "no node of that name", "--namespace")
	on("drain", "one", "--wait", "--reason", "new machine", "--drain-timeout", "1m").want(t, cli.ExitDone, "one has left\n")
	<-one.ended
	if one.err != nil {
		t.Fatalf("got %v, want a clean end", one.err)
	}
	if r := on("node", "list", "--json"); r.code != cli.ExitDone || strings.Contains(r.stdout, `"one"`) {
		t.Fatalf("got %+v, want no record of one that has left", r)
	}
	if r := on("start", "greet", "--id", "g", "--input", `"ox"`, "--wait"); r.code != cli.ExitDone || r.stdout != "\"hello ox\"\n" {
		t.Fatalf("got %+v, want the other node at work", r)
	}
	on("drain", "two", "--json").want(t, cli.ExitDone, `{"node":"two","status":"draining","gone":false}`+"\n")
	<-two.ended
	if two.err != nil {
		t.Fatalf("got %v, want a clean end", two.err)
	}
	died(t, url, "three")
	on("drain", "three").want(t, cli.ExitFailed, "", "does not listen", "drover node remove three")
}

// The NATS server of the node is gone with it, and the command still returns.
func TestDrainOfAServerOfItsOwn(t *testing.T) {
	s := serving(t, memoryServer())
	command("", "drain", s.Node, "--wait", "--nats", s.URL, "--timeout", "30s").want(t, cli.ExitDone, s.Node+" has left\n", "")
	<-s.ended
	if s.err != nil {
		t.Fatalf("got %v, want a clean end", s.err)
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
