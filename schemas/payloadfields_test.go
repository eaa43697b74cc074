package schemas_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

func TestPayloadFields(t *testing.T) {
	input, details := schemas.Text("in"), schemas.Text("why")
	for name, tc := range map[string]struct {
		attributes any
		want       []string
	}{
		"one of several":       {&schemas.ScheduleActivity{ActivityID: "a", Input: input}, []string{"in"}},
		"an event":             {&schemas.ActivityFailed{Reason: "r", Details: details}, []string{"why"}},
		"none":                 {&schemas.DeciderStarted{}, nil},
		"not to be set":        {schemas.ScheduleActivity{Input: input}, nil},
		"nil":                  {(*schemas.ScheduleActivity)(nil), nil},
		"nothing":              {nil, nil},
		"no struct, a payload": {&input, nil},
	} {
		var got []string
		for _, p := range maps.Collect(schemas.PayloadFields(tc.attributes)) {
			if len(p) > 0 {
				got = append(got, string(p))
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
