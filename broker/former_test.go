package broker_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/schemas"
)

// said is a line of a conversation of commit f8efff0, recorded there: what clients and workers sent, in order, what the
// deciders answered, in order, and one of each kind of what the servers sent to them. Only the subject of outcomes is a later one.
type said struct {
	Do, Subject string
	Header      map[string]string
	Body        []byte
}

func conversation(t *testing.T, who string) (sent, decided []said, heard map[string]said) {
	t.Helper()
	text, err := os.ReadFile("testdata/former/" + who + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	heard = map[string]said{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s said
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		switch s.Do {
		case "send":
			sent = append(sent, s)
		case "decide":
			decided = append(decided, s)
		default:
			heard[s.Subject] = s
		}
	}
	return sent, decided, heard
}

// Clients and workers of f8efff0, in Go with msgpack and in JSON, are understood to the byte: the same history comes of
// what they sent, and what they are sent has all that they were sent then.
func TestFormerClientsAndWorkers(t *testing.T) {
	ends := "ActivityFailed ActivityScheduled ActivityScheduled ActivityScheduled ActivityStarted ActivityStarted " +
		"ActivityStarted ActivitySuccess ActivitySuccess Marker"
	for _, who := range []string{"go", "json"} {
		t.Run(who, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) { testFormer(t, f, who, ends) })
		})
	}
}

func testFormer(t *testing.T, f *fleet, who, happens string) {
	sent, decided, heard := conversation(t, who)
	f.node("a", nil)
	var mu sync.Mutex
	asked := 0
	for _, subj := range []string{ns.Decide("order"), ns.Decide("order") + ".*"} {
		_, err := f.nc.Subscribe(subj, func(m *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			var task schemas.DecisionTask
			if m.Reply == "" || schemas.Unmarshal(m.Data, &task) != nil || task.Token == "" {
				return
			}
			if asked == 0 {
				hasStill(t, "decision task", heard["decide"].Body, m.Data)
			}
			if asked == len(decided) {
				t.Errorf("asked once more than then: %s", m.Data)
				return
			}
			var then schemas.DecisionReply
			body := decided[asked].Body
			if err := schemas.Unmarshal(body, &then); err != nil || len(then.Token) != len(task.Token) {
				t.Errorf("the answer to %s was to %s: %v", task.Token, then.Token, err)
			}
			asked++
			_ = m.Respond(bytes.ReplaceAll(body, []byte(then.Token), []byte(task.Token))) // the test may be over
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	f.flush()
	time.Sleep(2 * time.Second)
	tasks := map[string]*task{}
	for _, s := range sent {
		if token := tokenIn(s); token != "" && tasks[token] == nil {
			k := f.pull()
			tasks[k.Token] = k
			if len(tasks) == 1 {
				hasStill(t, "task", heard["task"].Body, k.msg.Data())
			}
			if k.Token != token {
				t.Fatalf("%s: pulled %s, want %s", s.Subject, k.Token, token)
			}
		}
		m := nats.NewMsg(s.Subject)
		for k, v := range s.Header {
			m.Header.Set(k, v)
		}
		m.Data = s.Body
		if strings.Contains(s.Subject, ".announce.") {
			if err := f.nc.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
			continue
		}
		answer, err := f.nc.RequestMsgWithContext(t.Context(), m)
		if err != nil {
			t.Fatalf("%s: %v", s.Subject, err)
		}
		if bytes.Contains(answer.Data, []byte("error")) {
			t.Errorf("%s is answered %q", s.Subject, answer.Data)
		}
		if strings.HasSuffix(s.Subject, "api.result") {
			var r schemas.ResultResponse
			if err := schemas.Unmarshal(answer.Data, &r); err != nil || r.Status != schemas.StatusCompleted || string(r.Result) != `"done"` {
				t.Errorf("the result is %+v, %v", r, err)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if strings.Contains(s.Subject, "signal") {
			time.Sleep(2 * time.Minute) // its timer
		}
	}
	if got := f.dead(); len(got) != 0 {
		t.Errorf("dead letters %v, want none", got)
	}
	var got []string
	for _, typ := range f.types("o") {
		if strings.HasPrefix(typ, "Activity") || typ == "Marker" {
			got = append(got, typ)
		}
	}
	slices.Sort(got)
	if strings.Join(got, " ") != happens || f.result0("o") != "completed" {
		t.Errorf("history %v, want %s, and the end", f.types("o"), happens)
	}
}

// tokenIn is the token of the activity that a message is about.
func tokenIn(s said) string {
	kind, _, _ := strings.Cut(strings.TrimPrefix(s.Subject, "drover.default."), ".")
	if !slices.Contains([]string{"in", "outcome", "beat"}, kind) {
		return ""
	}
	var r schemas.Heartbeat
	if schemas.Unmarshal(s.Body, &r) != nil {
		return ""
	}
	return r.Token
}

// hasStill fails unless a JSON body has every field of a former one, with a value of the same kind.
func hasStill(t *testing.T, what string, former, now []byte) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(former, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(now, &b); err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if missing := lacks(what, a, b); missing != "" {
		t.Error(missing)
	}
}

func lacks(at string, former, now any) string {
	if reflect.TypeOf(former) != reflect.TypeOf(now) {
		return fmt.Sprintf("%s was %T and is %T", at, former, now)
	}
	switch was := former.(type) {
	case map[string]any:
		for name, v := range was {
			is, there := now.(map[string]any)[name]
			if !there {
				return fmt.Sprintf("%s has no field %s any more", at, name)
			}
			if missing := lacks(at+"."+name, v, is); missing != "" {
				return missing
			}
		}
	case []any:
		for i, v := range was {
			if i == len(now.([]any)) {
				return fmt.Sprintf("%s has %d elements, and had %d", at, i, len(was))
			}
			if missing := lacks(fmt.Sprintf("%s[%d]", at, i), v, now.([]any)[i]); missing != "" {
				return missing
			}
		}
	}
	return ""
}
