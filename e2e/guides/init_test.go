package guides_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/drovertest"
)

// What "drover init" makes runs as it is: its test, its worker and the commands that it tells of.
func TestInit(t *testing.T) {
	e := drovertest.Start(t, nil)
	script := `
drover init example.com/shop/signup --source "$CLONE"
cd signup
go test ./...
go build -ldflags '-s -w' -o worker .
./worker &
drover start signup --id ada --input '"ada@example.com"'
drover signal ada confirmed
drover result ada
drover history ada
`
	// Without -trimpath the compiler's cache is one for each folder: all of Drover would be compiled anew.
	out := runScript(t, t.TempDir(), script, "CLONE="+root(t), "NATS_URL="+e.URL(), "GOFLAGS=-mod=mod -trimpath", "GOWORK=off")
	for _, want := range []string{
		"made signup, with Drover of " + root(t), "cd signup && go test ./... && go run .",
		"ok  \texample.com/shop/signup", "mail to ada@example.com: Welcome!", `"confirmed"`, "the mail server is busy",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}
