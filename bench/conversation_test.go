package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
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

// hearW1 is what a Drover says for n workflows of W1, whose machine is never busy: in virtual time nothing is late.
func hearW1(t *testing.T, n int) (all []*nats.Msg) {
	t.Helper()
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
		// Its worker may refuse the next one while it asks for more, and then gets none for 2 ms: for ever, if no time passes.
		time.Sleep(10 * time.Millisecond)
		all = heard(t, e.Client.Conn().NATS(), func() { run(n) })
	})
	return all
}

// exactly tells where a script is not LC's to the message.
func exactly(s *script) error {
	all := []error{s.check()}
	for _, a := range asks {
		if asked, answered := len(s.Asked[a.name]), len(s.Answered[a.name]); asked != s.Workflows*a.asked || answered != s.Workflows*a.answered {
			all = append(all, fmt.Errorf("%s: got %d messages and %d answers for %d workflows, want %d and %d each", a.name, asked, answered, s.Workflows, a.asked, a.answered))
		}
	}
	if len(s.Other) > 0 {
		all = append(all, fmt.Errorf("got other messages too: %v", s.Other))
	}
	return errors.Join(all...)
}

// scriptOfW1 is hearW1 with its script. In virtual time nothing is late, but the order in which goroutines run is free: a task may be
// refused or find its run busy, and go another way. So it is heard several times at most, as LC does, and one must be LC's exactly.
func scriptOfW1(t *testing.T, n int) (all []*nats.Msg, s *script) {
	t.Helper()
	var err error
	for range scriptTries {
		all = hearW1(t, n)
		s = transcribe(all, n, 4)
		if err = exactly(s); err == nil {
			return all, s
		}
		t.Logf("again, since this was another way: %v", err)
	}
	t.Fatal(err)
	return nil, nil
}

// TestConversationIsThatOfW1 holds LC's messages against those of W1: they are the same to the message. It fails when W1 says more or
// less than LC, or stores another number of records.
func TestConversationIsThatOfW1(t *testing.T) {
	const n = 40
	if all, _ := scriptOfW1(t, n); len(all) < 23*n {
		t.Errorf("got %d messages heard for %d workflows, want at least 23 each", len(all), n)
	}
}

// TestConversationWeighsWhatW1Weighs: the messages of each kind have the size of those of W1, with subjects and headers, but for what
// numbers take that have other digits.
func TestConversationWeighsWhatW1Weighs(t *testing.T) {
	const n, most = 40, 0.01
	weigh := func(all []*nats.Msg) map[string]float64 {
		sizes := map[string]float64{}
		for _, m := range all {
			if name := questionOf(m); name != "" {
				sizes[name] += float64(len(m.Subject) + len(m.Reply) + len(flat(m)))
			}
		}
		return sizes
	}
	all, s := scriptOfW1(t, n)
	c, conn, broken := talking(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := weigh(heard(t, conn.NATS(), func() {
		if _, err := atOnce(ctx, 8, n, c.workflow); err != nil {
			t.Fatal(errors.Join(err, context.Cause(broken)))
		}
	}))
	for name, want := range weigh(all) {
		if math.Abs(got[name]-want) > most*want {
			t.Errorf("%s: got %.1f bytes a workflow, want %.1f as in W1, within 1 %%", name, got[name]/n, want/n)
		}
	}
}

// testScript has bodies of sizes that no two kinds share, for n workflows.
func testScript(n int) *script {
	s := &script{Workflows: n, Partitions: 3, Asked: map[string][][]byte{}, Answered: map[string][][]byte{}, Other: map[string]int{}}
	for i, a := range asks {
		for j := range n * a.asked {
			if a.name == askRecord {
				s.Statuses = append(s.Statuses, fmt.Sprintf("open %d x bench", 5+j%steps))
			}
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
		case askLook, "answer to " + askLook, "answer to " + askRecord, "answer to " + askTask: // JetStream's own, or none
		default:
			if size != want[name] {
				t.Errorf("%s: got %v bytes, want %v", name, size, want[name])
			}
		}
	}
	if got, want := slices.Sorted(slices.Values(got.Statuses)), slices.Sorted(slices.Values(s.Statuses)); !slices.Equal(got, want) {
		t.Errorf("got statuses %q of records, want %q", got, want)
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
		{"answered tasks", func(s *script) { s.Answered[askTask] = make([][]byte, 300) }, "3.00 answers to task, and 0 in LC"},
		{"decisions behind outcomes", func(s *script) { s.Asked[askDecide] = make([][]byte, 400) }, "4.00 messages decide, and 1 in LC"},
		{"offers to anyone", func(s *script) { s.Other["drover.default.offer.bench"] = 300 }, "3.00 other messages (drover.default.offer.bench), and 0 in LC"},
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
	task := say("drover.default.decide.bench.worker", "r.5", "task")
	task.Header = nats.Header{schemas.AheadHeader: {benchList, "noop"}}
	got := transcribe([]*nats.Msg{
		say("r.1", "", "started"), say("drover.default.api.start", "r.1", "start"),
		say(directGet+"drover-default-history-1", "r.2", `{"last_by_subj":"x"}`), say("r.2", "", ""),
		say(directGet+"drover-default-history-1", "r.9", `{"seq":1,"batch":9}`), say("r.9", "", "old"), say("r.9", "", "older"),
		record, say("r.3", "", "ack"),
		say("drover.default.history.1.fence", "r.8", "fence"), say("$KV.x", "r.7", "claim"), say("r.7", "", "ack"),
		say("drover.default.task.bench.0", "r.6", "task"),
		task, say("drover.default.decide.bench.worker", "r.10", "question"), say("r.10", "", "decision"),
	}, 1, 4)
	asked := map[string][][]byte{askDecide: {[]byte("question")}, askTask: {[]byte("task")}, askStart: {[]byte("start")}, askLook: {[]byte(`{"last_by_subj":"x"}`)}, askRecord: {[]byte("record")}}
	answered := map[string][][]byte{askDecide: {[]byte("decision")}, askStart: {[]byte("started")}, askLook: {{}}, askRecord: {[]byte("ack")}}
	other := map[string]int{"drover.default.history.1.fence": 1, "drover.default.task.bench.0": 1}
	want := &script{Workflows: 1, Partitions: 4, Asked: asked, Answered: answered, Statuses: []string{"open 1"}, Other: other}
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
	want.Statuses = want.Statuses[1:]
	if err := want.save(path); err != nil {
		t.Fatal(err)
	}
	if _, err := loadScript(path); err == nil || !strings.Contains(err.Error(), "8 records and 7 statuses") {
		t.Fatalf("got %v, want an error about a status that is missing", err)
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
