package safecall_test

import (
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/internal/safecall"
)

func TestTell(t *testing.T) {
	log, lines := logtest.NewNullLogger()
	told := 0
	safecall.Tell(log, func(n int) { told += n }, 3)
	safecall.Tell[int](log, nil, 3)
	if told != 3 || len(lines.AllEntries()) != 0 {
		t.Fatalf("told %d, logged %v, want 3 and nothing", told, lines.AllEntries())
	}
	safecall.Tell(log, func(n int) { panic(n) }, 3)
	last := lines.LastEntry()
	if last == nil || last.Level != logrus.ErrorLevel || last.Data["err"] != "3" || !strings.Contains(last.Data["stack"].(string), "TestTell") {
		t.Fatalf("logged %+v, want the panic with its stack", last)
	}
}
