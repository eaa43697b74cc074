// Package readme_test keeps README.md and docs/start/nats-and-json.md true: the Go code is the tested example's, the flow can be
// deployed, and the JSON works as it stands, from a client that knows NATS and JSON and nothing of Drover.
package readme_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/decider/flow/define"
	"github.com/droverhq/drover/drovertest"
)

const (
	root   = "../.."
	readme = "README.md"
	byHand = "docs/start/nats-and-json.md"
)

// blocks returns the code blocks of a page in one language, in order.
func blocks(t *testing.T, page, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1])
	}
	return found
}

func TestGo(t *testing.T) {
	found := blocks(t, readme, "go")
	if len(found) != 1 {
		t.Fatalf("got %d blocks of Go, want 1", len(found))
	}
	source, err := os.ReadFile(filepath.Join(root, "examples/workflows/helloworld/main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(source), "\n\n"+found[0]) {
		t.Errorf("the Go block is not in examples/workflows/helloworld/main.go; got:\n%s", found[0])
	}
}

// The flow of README.md can be deployed.
func TestFlow(t *testing.T) {
	found := blocks(t, readme, "yaml")
	if len(found) != 1 {
		t.Fatalf("got %d flows, want 1", len(found))
	}
	if _, err := define.Parse(readme, []byte(found[0]), nil); err != nil {
		t.Error(err)
	}
}

// request is a line "nats req SUBJECT 'BODY'" of the page.
type request struct{ subject, body string }

func requests(t *testing.T) []request {
	t.Helper()
	var found []request
	for _, block := range blocks(t, byHand, "sh") {
		for _, m := range regexp.MustCompile(`(?m)^nats req (\S+) '([^']*)'$`).FindAllStringSubmatch(block, -1) {
			found = append(found, request{m[1], m[2]})
		}
	}
	return found
}

// The JSON of the page, played as it stands: the requests in their order, the decider's two answers, the worker's report.
func TestJSON(t *testing.T) {
	bodies, asked := blocks(t, byHand, "json"), requests(t)
	if len(bodies) != 3 || len(asked) < 3 {
		t.Fatalf("got %d JSON blocks and %d requests, want 3 and at least 3", len(bodies), len(asked))
	}
	nc, err := nats.Connect(drovertest.Start(t, nil).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	answers := make(chan string, 2)
	answers <- bodies[0]
	answers <- bodies[1]
	_, err = nc.QueueSubscribe("drover.default.decide.hello", "deciders", func(m *nats.Msg) {
		select {
		case body := <-answers:
			if err := m.Respond(withToken(t, body, m.Data)); err != nil {
				t.Errorf("respond: %v", err)
			}
		default:
			t.Errorf("got a third decision task: %s", m.Data)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range asked {
		answer := ask(t, nc, q)
		switch {
		case strings.HasSuffix(q.subject, ".start"):
			work(t, nc, bodies[2])
		case strings.HasSuffix(q.subject, ".result"):
			if answer["status"] != "completed" || answer["result"] != "hello Ada" {
				t.Errorf("got %v, want the greeting", answer)
			}
		case i == len(asked)-1:
			t.Errorf("the last request is %q, want the one for the result", q.subject)
		}
	}
}

// ask makes a request and returns the answer, which must not be a refusal.
func ask(t *testing.T, nc *nats.Conn, q request) map[string]any {
	t.Helper()
	msg, err := nc.Request(q.subject, []byte(q.body), 10*time.Second)
	if err != nil {
		t.Fatalf("%s: %v", q.subject, err)
	}
	var answer map[string]any
	if err := json.Unmarshal(msg.Data, &answer); err != nil {
		t.Fatal(err)
	}
	if answer["error"] != nil {
		t.Fatalf("%s: got the refusal %v", q.subject, answer["error"])
	}
	return answer
}

// work takes one task off the list and reports on it.
func work(t *testing.T, nc *nats.Conn, report string) {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := js.Consumer(t.Context(), "drover-default-tasks-greeters", "workers")
	if err != nil {
		t.Fatal(err)
	}
	msg, err := consumer.Next(jetstream.FetchMaxWait(10 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	var task struct{ Report string }
	if err := json.Unmarshal(msg.Data(), &task); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), task.Report, withToken(t, report, msg.Data())); err != nil {
		t.Fatal(err)
	}
	if err := msg.Ack(); err != nil {
		t.Fatal(err)
	}
}

// withToken puts the token of a task into a body.
func withToken(t *testing.T, body string, task []byte) []byte {
	t.Helper()
	var from struct{ Token string }
	if err := json.Unmarshal(task, &from); err != nil || from.Token == "" {
		t.Errorf("got the task %s and %v, want one with a token", task, err)
	}
	return []byte(strings.Replace(body, "TOKEN", from.Token, 1))
}
