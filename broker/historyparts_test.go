package broker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
)

// Events of a type are awaited like others, whatever comes between them, and the last events are read without those before.
func TestHistoryByTypeAndFromTheEnd(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", func(*decisionTask) string { return `[]` })
		f.start(`{"workflowId":"w","type":"order"}`)
		ask := func(body string) (a schemas.HistoryResponse) {
			t.Helper()
			f.apiInto(&a, "history", `{"workflowId":"w",`+body+`}`)
			return a
		}
		ids := func(a schemas.HistoryResponse) (all []int64) {
			for _, e := range a.Events {
				all = append(all, e.ID)
			}
			return all
		}
		var signals []int64
		for n, next := 0, int64(0); n < 3; n++ {
			f.api("signal", fmt.Sprintf(`{"workflowId":"w","name":"s%d"}`, n))
			for len(signals) == n {
				a := ask(fmt.Sprintf(`"types":["Signal","TimerExpired"],"after":%d,"wait":30`, next))
				if a.Error != nil || a.Next < next {
					t.Fatalf("got %+v after event %d", a, next)
				}
				signals, next = append(signals, ids(a)...), a.Next
			}
		}
		all := ids(ask(`"limit":1000`))
		last := ask(`"newestFirst":true,"limit":2`)
		want := []int64{all[len(all)-1], all[len(all)-2]}
		if got := ids(last); !slices.Equal(got, want) || !last.More || last.Next != want[1] {
			t.Errorf("got %+v from the end, want events %v and more", last, want)
		}
		got := ids(ask(`"newestFirst":true,"types":["Signal"]`))
		slices.Reverse(got)
		if !slices.Equal(got, signals) || len(signals) != 3 {
			t.Errorf("got signals %v from the end, and %v awaited; want three, and the same", got, signals)
		}
		for body, want := range map[string]string{
			`"types":["ActivityFaild"]`:   `there is no event type "ActivityFaild" (did you mean ActivityFailed?)`,
			`"types":["x"]`:               "docs/reference/events.md",
			`"newestFirst":true,"wait":3`: "awaited in their order",
		} {
			a := ask(body)
			if a.Error == nil || a.Error.Code != schemas.CodeInvalid || !strings.Contains(a.Error.Error(), want) {
				t.Errorf("%s: got %+v, want a refusal with %q", body, a.Error, want)
			}
		}
	})
}
