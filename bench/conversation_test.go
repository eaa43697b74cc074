package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
)

// heard runs something and returns every message that the server has carried meanwhile.
func heard(t *testing.T, conn *nats.Conn, do func()) []*nats.Msg {
	t.Helper()
	r := &recorder{conn: conn, wants: func(*nats.Msg) bool { return true }}
	if err := r.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	do()
	all, err := r.end(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestConversationIsThatOfW1 holds LC's messages against those of a Drover whose machine is never busy: in virtual time, where nothing
// is late, they are the same to the message. It fails when W1 says more or less than LC, or stores another number of records.
func TestConversationIsThatOfW1(t *testing.T) {
	const n = 40
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		deciders := decider.New(e.Client.Conn(), nil)
		deciders.Register("bench", decider.Func(decide))
		workers := activity.New(e.Client.Conn(), &activity.Options{Lists: []string{benchList}, Concurrency: 64})
		activity.Register(workers, "noop", func(_ context.Context, in string) (string, error) { return in, nil })
		e.Go(deciders, workers)
		b := &bench{client: e.Client}
		run := func(n int) {
			if _, err := atOnce(t.Context(), 8, n, func(ctx context.Context, _ int) error { return b.workflow(ctx, job{Kind: "seq", N: 3}) }); err != nil {
				t.Fatal(err)
			}
		}
		run(1) // the first task of a type is stored
		s := transcribe(heard(t, e.Client.Conn().NATS(), func() { run(n) }), n, 4)
		if err := s.check(); err != nil {
			t.Fatal(err)
		}
		for _, a := range asks {
			if asked, answered := len(s.Asked[a.name]), len(s.Answered[a.name]); asked != n*a.asked || answered != n*a.answered {
				t.Errorf("%s: got %d messages and %d answers for %d workflows, want %d and %d each", a.name, asked, answered, n, a.asked, a.answered)
			}
		}
		if len(s.Other) > 0 {
			t.Errorf("got other messages too: %v", s.Other)
		}
	})
}

// testScript has bodies of sizes that no two kinds share, for n workflows.
func testScript(n int) *script {
	s := &script{Workflows: n, Partitions: 3, Asked: map[string][][]byte{}, Answered: map[string][][]byte{}, Other: map[string]int{}, Status: "open 5 x bench"}
	for i, a := range asks {
		for j := range n * a.asked {
			s.Asked[a.name] = append(s.Asked[a.name], bytes.Repeat([]byte{'a' + byte(i)}, 100+10*i+j%2))
		}
		for range n * a.answered {
			answer := bytes.Repeat([]byte{'A' + byte(i)}, 50+i)
			if a.name == askOutcome {
				answer = []byte(`{"stream":"s","seq":7}`)
			}
			s.Answered[a.name] = append(s.Answered[a.name], answer)
		}
	}
	return s
}

// talking opens all three parts of LC on a server in this process.
func talking(t *testing.T, s *script) (c *caller, conn *post.Conn, broken context.Context) {
	t.Helper()
	server, err := embedded.Start(t.Context(), embedded.Options{DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	broken, fail := context.WithCancelCause(t.Context())
	h, err := openHub(t.Context(), server, s, fail)
	t.Cleanup(h.close)
	if err != nil {
		t.Fatal(err)
	}
	if conn, err = post.Dial(t.Context(), post.Options{InProcess: server.Conn()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if err := listenAsWorker(conn, s, fail); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return newCaller(conn, s), conn, broken
}

// TestConversationSaysWhatItsScriptSays has a script talked, and what is heard of it is the script again: as many messages of each kind,
// of the same mean sizes, and the records in the streams.
func TestConversationSaysWhatItsScriptSays(t *testing.T) {
	const n = 20
	s := testScript(n)
	c, conn, broken := talking(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	all := heard(t, conn.NATS(), func() {
		if _, err := atOnce(ctx, 5, n, c.workflow); err != nil {
			t.Fatal(errors.Join(err, context.Cause(broken)))
		}
	})
	got := transcribe(all, n, s.Partitions)
	if err := errors.Join(got.check(), context.Cause(broken)); err != nil {
		t.Fatal(err)
	}
	want := s.sizes()
	for name, size := range got.sizes() {
		switch name {
		case askLook, "answer to " + askLook, "answer to " + askRecord, "answer to " + askOffer: // JetStream's own, or none
		default:
			if size != want[name] {
				t.Errorf("%s: got %v bytes, want %v", name, size, want[name])
			}
		}
	}
	if got.Status != s.Status {
		t.Errorf("got status %q in a record, want %q", got.Status, s.Status)
	}
	var stored uint64
	for p := range s.Partitions {
		last, err := conn.StreamLastSeq(ctx, namespace.StreamHistory(p))
		if err != nil {
			t.Fatal(err)
		}
		stored += last
	}
	if want := uint64(n * steps); stored != want {
		t.Errorf("got %d records stored, want %d", stored, want)
	}
}

// TestConversationBreaksOff: a record that another has forestalled ends everything with a word.
func TestConversationBreaksOff(t *testing.T) {
	s := testScript(1)
	c, conn, broken := talking(t, s)
	if _, err := conn.PublishSync(t.Context(), namespace.History(0, "foreign", "run"), nil, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	defer context.AfterFunc(broken, cancel)()
	if err := c.workflow(ctx, 0); err == nil {
		t.Fatal("got no error, want one")
	}
	if err := context.Cause(broken); !errors.Is(err, post.ErrWrongSequence) {
		t.Fatalf("got %v, want a wrong sequence", err)
	}
}

func TestScriptChecks(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*script)
		want   string
	}{
		{"the same", func(*script) {}, ""},
		{"nearly the same", func(s *script) { s.Asked[askRecord] = s.Asked[askRecord][:390] }, ""},
		{"groups", func(s *script) { s.Answered[askRecord] = s.Answered[askRecord][:9] }, ""},
		{"another record", func(s *script) { s.Asked[askRecord] = append(s.Asked[askRecord], make([][]byte, 100)...) }, "5.00 messages record, and 4 in LC"},
		{"a question for the past", func(s *script) { s.Asked[askLook] = make([][]byte, 100) }, "1.00 messages look, and 0 in LC"},
		{"no results", func(s *script) { delete(s.Asked, askResult); delete(s.Answered, askResult) }, "0.00 messages result, and 1 in LC"},
		{"answered offers", func(s *script) { s.Answered[askOffer] = make([][]byte, 300) }, "3.00 answers to offer, and 0 in LC"},
		{"stored tasks", func(s *script) { s.Other["drover.default.task.bench.0"] = 300 }, "3.00 other messages (drover.default.task.bench.0), and 0 in LC"},
		{"short starts", func(s *script) { s.Asked[askStart][3] = []byte("x") }, "a message start of W1 has 1 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := testScript(100)
			tc.change(s)
			err := s.check()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// TestTranscribe sorts what was said, whatever was heard first, and leaves out what is no part of a workflow.
func TestTranscribe(t *testing.T) {
	say := func(subject, reply, body string) *nats.Msg {
		return &nats.Msg{Subject: subject, Reply: reply, Data: []byte(body)}
	}
	record := say("drover.default.history.1.w.r", "r.3", "record")
	record.Header = nats.Header{statusHeader: {"open 1"}}
	got := transcribe([]*nats.Msg{
		say("r.1", "", "started"), say("drover.default.api.start", "r.1", "start"),
		say(directGet+"drover-default-history-1", "r.2", `{"last_by_subj":"x"}`), say("r.2", "", ""),
		say(directGet+"drover-default-history-1", "r.9", `{"seq":1,"batch":9}`), say("r.9", "", "old"), say("r.9", "", "older"),
		record, say("r.3", "", "ack"),
		say("drover.default.history.1.fence", "r.8", "fence"), say("$KV.x", "r.7", "claim"), say("r.7", "", "ack"),
		say("drover.default.task.bench.0", "r.6", "task"),
	}, 1, 4)
	asked := map[string][][]byte{askStart: {[]byte("start")}, askLook: {[]byte(`{"last_by_subj":"x"}`)}, askRecord: {[]byte("record")}}
	answered := map[string][][]byte{askStart: {[]byte("started")}, askLook: {{}}, askRecord: {[]byte("ack")}}
	other := map[string]int{"drover.default.history.1.fence": 1, "drover.default.task.bench.0": 1}
	want := &script{Workflows: 1, Partitions: 4, Asked: asked, Answered: answered, Status: "open 1", Other: other}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestScriptSaves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script")
	want := testScript(2)
	if err := want.save(path); err != nil {
		t.Fatal(err)
	}
	got, err := loadScript(path)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %v, %v, want %v", got, err, want)
	}
	if _, err := loadScript(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Fatal("got no error, want one about a missing file")
	}
}

func TestNumbers(t *testing.T) {
	number := numberOf(1234567)
	got, err := readNumber(numbered(number, bytes.Repeat([]byte("x"), 40)))
	if err != nil || got != number || len(number) != numberSize {
		t.Fatalf("got %q, %v, want %q of %d bytes", got, err, number, numberSize)
	}
	if n, err := deskNumber(number, 4); err != nil || n != 3 {
		t.Fatalf("got partition %d, %v, want 3", n, err)
	}
	for _, bad := range []string{"", "conversation", "conversation--1", "conversation-x"} {
		if n, err := deskNumber(bad, 4); err == nil {
			t.Errorf("%q: got partition %d, want an error", bad, n)
		}
	}
	if _, err := readNumber([]byte("short")); err == nil {
		t.Error("got no error, want one about a short message")
	}
}
