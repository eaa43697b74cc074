package broker_test

import (
	"fmt"
	"testing"
)

// An outcome that the history has is no dead letter when its worker tells it again, whatever became of the run. What another worker says of the same
// attempt is one, and so is what the same worker says otherwise.
func TestOutcomesThatAreToldAgain(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", func(d *decisionTask) string {
			over := d.has("ActivitySuccess") || d.has("ActivityFailed") || d.has("ActivityCanceled")
			switch {
			case d.has("WorkflowStarted") && d.Events[0].Attributes["input"] == "again":
				return complete
			case d.has("WorkflowStarted") && d.WorkflowID == "retried":
				return "[" + scheduleActivity("a", `,"retry":{"initialInterval":600}`) + "]"
			case d.has("WorkflowStarted"):
				return "[" + scheduleActivity("a", "") + "]"
			case d.has("WorkflowCancelRequested"):
				return `[{"type":"RequestCancelActivity","attributes":{"activityId":"a"}}]`
			case !over || d.WorkflowID == "open":
				return "[]"
			case d.WorkflowID == "continued":
				return `[{"type":"ContinueAsNew","attributes":{"input":"again"}}]`
			}
			return complete
		})
		outcomes := map[string]string{
			"completed": `"kind":"success","result":{"a":1}`,
			"open":      `"kind":"success","result":"fine"`,
			"continued": `"kind":"success"`,
			"failed":    `"kind":"failed","reason":"bad luck","details":[1]`,
			"retried":   `"kind":"failed","reason":"bad luck","details":[1]`,
			"silent":    `"kind":"failed"`,
			"gave up":   `"kind":"canceled","details":"why not"`,
			"canceled":  `"kind":"canceled","details":"as told"`,
		}
		want := map[string]bool{}
		for id, outcome := range outcomes {
			f.start(fmt.Sprintf(`{"workflowId":%q,"type":"order","run":%q,"requestId":%[1]q}`, id, "r of "+id))
			k := f.pull()
			if id == "canceled" {
				k.report("started", `,"identity":"w"`)
				f.await(id, "ActivityStarted")
				f.api("cancel", `{"workflowId":"canceled"}`)
				f.await(id, "ActivityCancelRequested")
			}
			for range 3 {
				f.publish(k.Report, `{"token":"`+k.Token+`","identity":"w",`+outcome+`}`)
			}
			for _, other := range []string{
				`"identity":"v",` + outcome, `"identity":"w","kind":"success","result":"another"`, `"identity":"w","kind":"failed","reason":"another"`,
			} {
				body := `{"token":"` + k.Token + `",` + other + `}`
				f.publish(k.Report, body)
				want[body] = true
			}
			if err := k.msg.Ack(); err != nil {
				t.Fatal(err)
			}
		}
		for _, l := range f.letters() {
			if !want[string(l.Body)] || l.Reason != "closed-activity" && l.Reason != "stale-token" {
				t.Errorf("dead letter %s: %s, want none of what was told again", l.Reason, l.Body)
			}
			delete(want, string(l.Body))
		}
		for body := range want {
			t.Errorf("%s is no dead letter", body)
		}
	})
}
