package logs_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/internal/logs"
)

func TestOr(t *testing.T) {
	mine := logrus.New()
	if got := logs.Or(mine); got != mine {
		t.Errorf("got %v, want the logger that was given", got)
	}
	// U1: who gives no logger hears of warnings and errors.
	got, ok := logs.Or(nil).(*logrus.Logger)
	if !ok || !got.IsLevelEnabled(logrus.WarnLevel) || got.IsLevelEnabled(logrus.InfoLevel) || got.Out != os.Stderr {
		t.Errorf("got %v, want a logger of warnings and errors on stderr", got)
	}
}

// U1: a file gets documents, one a line, whatever the entry holds.
func TestFilesGetJSON(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log := logs.New(f)
	log.Info("not told")
	log.WithField("stack", "a\n\tb").Error("it <panicked>")
	body, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Level, Msg, Stack string }
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatalf("got %q: %v", body, err)
	}
	if doc.Level != "error" || doc.Msg != "it <panicked>" || doc.Stack != "a\n\tb" || bytes.Count(body, []byte("\n")) != 1 {
		t.Errorf("got %s", body)
	}
}

// U1: a person reads a line, and the stack as lines.
func TestTextShowsStacksAsLines(t *testing.T) {
	for _, colors := range []bool{false, true} {
		var b bytes.Buffer
		log := logs.New(&b)
		log.SetFormatter(logs.Text(colors))
		log.WithFields(logrus.Fields{"stack": "goroutine 1:\nmain.go:3\n", "type": "pay"}).Error("an activity panicked")
		log.Warn("next")
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if len(lines) != 4 || !strings.Contains(lines[0], "an activity panicked") || !strings.Contains(lines[0], "pay") ||
			lines[1] != "    goroutine 1:" || lines[2] != "    main.go:3" || !strings.Contains(lines[3], "next") {
			t.Errorf("colors %v: got %q", colors, lines)
		}
	}
}
