package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/cmd/drover/cli"
)

// The steps that need no program, as a flow sees them.
func TestKindsInFlows(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/prices", func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"item": %q, "user": %q}`, r.URL.Query().Get("item"), user)
	})
	mux.HandleFunc("/bytes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write([]byte{0xff, 0}) // it fails only if the client has gone
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "I am a teapot")
	})
	mux.HandleFunc("/list.yaml", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "- {name: a}\n- {name: b}\n") })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	dir := flowFiles(t, map[string]string{
		"names.json": `{"x": [1, 2]}`,
		"kinds.yaml": `
steps:
- type: http
  endpoint: ${url}/prices
  query: {item: b c}
  username: ada
  password: secret
- let price = ${output}
- step: http ${url}/bytes
- let bytes = ${output.content_bytes}
- id: pot
  step: http ${url}/broken
  on-error: {step: no-op, output: "${workflow.previous_step.output}"}
- step: http ${url}/broken
  status_code: any
- let pot = ${output}
- load list names = ${url}/list.yaml
- load map numbers = ${dir}/names.json
- type: shell
  command: echo "$WHO" && echo oops >&2 && exit 3
  env: {WHO: "${names[1].name}"}
  exit_code: 3
- let said = ${output}
- step: shell exit 4
  on-error: let exit = 4 of shell
- publish shop.sold with ${price.content}
- step: request nobody.there with 5
  on-error: let refused = ${workflow.error.type}
- step: shell sleep 1000
  timeout: 50ms
  on-error: let late = ${workflow.error.type}
output:
  price: ${price.content_json}
  code: ${price.status_code}
  bytes: ${bytes}
  pot: ${pot.content}
  potcode: ${pot.status_code}
  names: ${names}
  numbers: ${numbers}
  said: ${said}
  exit: ${exit}
  refused: ${refused}
  late: ${late}
`,
	})
	r := command("", "flow", "run", "kinds.yaml", "--kinds", "http,load,shell,publish,request", "--load-dir", dir, "--input", "url="+s.URL, "--input", "dir="+dir, "--timeout", "5m")
	if r.code != cli.ExitDone {
		t.Fatalf("got %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"price": map[string]any{"item": "b c", "user": "ada"}, "code": 200.0, "bytes": "/wA=", "pot": "I am a teapot", "potcode": 418.0,
		"names": []any{map[string]any{"name": "a"}, map[string]any{"name": "b"}}, "numbers": map[string]any{"x": []any{1.0, 2.0}},
		"said": map[string]any{"stdout": "b\n", "stderr": "oops\n", "exit_code": 3.0}, "exit": "4 of shell", "refused": "no_responders", "late": "timeout",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, r.stderr)
	}

	// No shell that nobody has asked for.
	if err := writeFile("sh.yaml", "steps: [shell id]\n"); err != nil {
		t.Fatal(err)
	}
	command("", "flow", "run", "sh.yaml").want(t, cli.ExitFailed, "", "the activity shell, which nobody does here", "--kinds http,request,publish,load,shell")
	if r := command("", "worker", "--help"); !strings.Contains(strings.Join(strings.Fields(r.stdout), " "), "(default [http,request,publish,load])") {
		t.Errorf("the worker has other kinds by default than those without harm:\n%s", r.stdout)
	}
}
