package main

import (
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestCovers(t *testing.T) {
	for _, tc := range []struct {
		filter, subject string
		want            bool
	}{
		{"a.b", "a.b", true},
		{"a.b", "a.c", false},
		{"a.b", "a", false},
		{"a.b", "a.b.c", false},
		{"a.*", "a.b", true},
		{"a.*", "a", false},
		{"a.*", "a.b.c", false},
		{"a.*.c", "a.b.c", true},
		{"a.>", "a.b", true},
		{"a.>", "a.b.c", true},
		{"a.>", "a", false},
		{">", "a", true},
		{"drover.default.task.bench.-1", "drover.default.task.bench.0", false},
	} {
		if got := covers(tc.filter, tc.subject); got != tc.want {
			t.Errorf("%s covers %s: got %v, want %v", tc.filter, tc.subject, got, tc.want)
		}
	}
}

func TestDrawn(t *testing.T) {
	for reply, want := range map[string]string{
		"_INBOX.XyC660uCekS2OjpEBgpP4D.2": "XyC660uCekS2",
		"_INBOX.short":                    "short",
		"":                                "",
	} {
		if got := drawn(reply); got != want {
			t.Errorf("%q: got %q, want %q", reply, got, want)
		}
	}
}

func TestFlatHasHeaderAndData(t *testing.T) {
	m := &nats.Msg{Subject: "a", Header: nats.Header{"K": {"v"}}, Data: []byte("data")}
	if got, want := string(flat(m)), "NATS/1.0\r\nK: v\r\n\r\ndata"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	m.Header = nil
	if got := string(flat(m)); got != "data" {
		t.Fatalf("without headers: got %q, want the data", got)
	}
}

// testTape has two workflows: a start each, by the server, and a task each, which workers acknowledge.
func testTape() *tape {
	return &tape{
		Workflows: 2, Outstanding: 4, Partitions: 2,
		Streams: []spool{
			{
				Config:    jetstream.StreamConfig{Name: "drover-default-in-1", Subjects: []string{"in.1.>"}},
				Consumers: []jetstream.ConsumerConfig{{AckPolicy: jetstream.AckNonePolicy, DeliverSubject: "x"}},
			},
			{
				Config: jetstream.StreamConfig{Name: "drover-default-tasks-bench", Subjects: []string{"task.*"}},
				Consumers: []jetstream.ConsumerConfig{
					{Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: "task.0"},
					{Durable: "workers-high", AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: "task.1"},
				},
			},
		},
		Messages: []taped{
			{Stream: 0, From: fromServer, Subject: "in.1.a", Body: make([]byte, 10)},
			{Stream: 0, From: fromLoad, Subject: "in.1.b", Body: make([]byte, 20)},
			{Stream: 1, From: fromServer, Subject: "task.0", Body: make([]byte, 30)},
			{Stream: 1, From: fromServer, Subject: "task.0", Body: make([]byte, 30)},
		},
	}
}

func TestTapeDescribes(t *testing.T) {
	var l line
	testTape().describe(&l)
	if l.Messages != 2 || l.PerClass["in"] != 1 || l.PerClass["tasks-bench"] != 1 || l.ClassBytes["in"] != 15 || l.ClassBytes["tasks-bench"] != 30 {
		t.Fatalf("got %v a workflow, %v of %v bytes, want 2, of in 1 of 15, of tasks-bench 1 of 30", l.Messages, l.PerClass, l.ClassBytes)
	}
}

func TestExpected(t *testing.T) {
	tp := testTape()
	for _, tc := range []struct{ stream, consumer, want int }{{0, 0, 2}, {1, 0, 2}, {1, 1, 0}} {
		c := tp.Streams[tc.stream].Consumers[tc.consumer]
		if got := tp.expected(tc.stream, c); got != tc.want {
			t.Errorf("stream %d, consumer %d: got %d messages, want %d", tc.stream, tc.consumer, got, tc.want)
		}
	}
}

func TestTapeSaves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape")
	want := testTape()
	if err := want.save(path); err != nil {
		t.Fatal(err)
	}
	got, err := loadTape(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Messages) != 4 || got.Messages[2].Subject != "task.0" || got.Streams[1].Consumers[0].AckPolicy != jetstream.AckExplicitPolicy {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}
