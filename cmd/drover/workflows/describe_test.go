package workflows

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
)

func TestDescribeLocks(t *testing.T) {
	got := string(DescribeText(&schemas.DescribeResponse{Locks: []schemas.OpenLock{
		{Lock: "apt", Scope: "host 1", Fence: 7, Since: 1, Expires: 60_000_000_001},
		{Lock: "db", Since: 1},
		{Lock: "up", Fence: 3, Since: 1, Holder: &schemas.Execution{WorkflowID: "top"}},
	}}, nil, schemas.Timestamp(2).Time()))
	for _, want := range []string{"holds it, fence 7", "waits for it", "entered by top", `"host 1"`, "1970-01-01 00:01:00"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
}
