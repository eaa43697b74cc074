package query_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/schemas"
)

// The list filters in Temporal's documentation (pages "List Filter" and "Search Attribute", of
// November 2026 and of 2022) mean the same here: which of the rows each finds.
func TestTemporalFilters(t *testing.T) {
	const id, other = "<workflow-id>", "<another-workflow-id>"
	rows := map[string]*query.Row{
		"open": {
			WorkflowID: id, Type: "main.YourWorkflowDefinition", Status: schemas.StatusOpen,
			Started: at("2026-01-01T00:00:00Z"), Attributes: map[string]string{"YourCustomSA": "YourCustomSAValue"},
		},
		"ended": {
			WorkflowID: other, Type: "main.YourWorkflowDefinition", Status: schemas.StatusCompleted,
			Started: at("2021-06-07T00:00:00Z"), Closed: at("2021-08-30T00:00:00Z"), Events: 9,
			Attributes: map[string]string{"YourCustomSA": "YourCustomSAValue", "CustomIntField": "1"},
		},
		"early": {
			WorkflowID: "order-", Type: "main.YourWorkflowDefinition", Status: schemas.StatusCompleted,
			Started: at("2021-06-06T00:00:00Z"), Closed: at("2021-06-07T00:00:00Z"), Attributes: map[string]string{"CustomIntField": "2"},
		},
		"August": {
			WorkflowID: "order-1234", Type: "<workflow-type-prefix>x", Status: schemas.StatusFailed,
			Started: at("2021-08-25T00:00:00Z"), Closed: at("2021-08-25T02:00:00Z"), Attributes: map[string]string{"CustomIntField": "10"},
		},
		"tilde": {
			WorkflowID: "order-~~~abracadabra", Type: "YourWorkflow", Status: schemas.StatusContinuedAsNew,
			Started: at("2026-01-02T00:00:00Z"), Closed: at("2026-01-02T00:00:01Z"), Schedule: "nightly",
			Attributes: map[string]string{"SomeFlag": "true"},
		},
	}
	for text, want := range map[string]string{
		`WorkflowType = "main.YourWorkflowDefinition" and ExecutionStatus != "Running" and (StartTime > "2021-06-07T16:46:34.236-08:00" or CloseTime > "2021-06-07T16:46:34-08:00")`:                         "ended",
		`WorkflowType = "main.YourWorkflowDefinition" and ExecutionStatus != "Running" and (StartTime > "2021-06-07T16:46:34.236-08:00" or CloseTime > "2021-06-07T16:46:34-08:00") order by StartTime desc`: "ended",
		`WorkflowType = 'main.YourWorkflowDefinition' and ExecutionStatus != 'Running' and (StartTime > '2022-06-07T16:46:34.236-08:00' or CloseTime < '2022-06-08T16:46:34-08:00')`:                         "ended early",
		`WorkflowType = 'main.YourWorkflowDefinition' and YourCustomSA = 'YourCustomSAValue' and (StartTime > '2022-06-07T16:46:34.236-08:00' or CloseTime < '2022-06-08T16:46:34-08:00')`:                   "open ended",
		`WorkflowId = '<workflow-id>'`:                                                               "open",
		`WorkflowId = '<workflow-id>' or WorkflowId = '<another-workflow-id>'`:                       "open ended",
		`WorkflowId IN ('<workflow-id>', '<another-workflow-id>')`:                                   "open ended",
		`WorkflowId = '<workflow-id>' order by StartTime desc`:                                       "open",
		`WorkflowId = '<workflow-id>' and ExecutionStatus = 'Running'`:                               "open",
		`WorkflowId = '<another-workflow-id>' or ExecutionStatus = 'Running'`:                        "open ended",
		`WorkflowId = '<workflow-id>' and StartTime > '2021-08-22T15:04:05+00:00'`:                   "open",
		`ExecutionTime between '2021-08-22T15:04:05+00:00' and '2021-08-28T15:04:05+00:00'`:          "August",
		`ExecutionTime < '2021-08-28T15:04:05+00:00' or ExecutionTime > '2021-08-22T15:04:05+00:00'`: "open ended early August tilde",
		`WorkflowType STARTS_WITH '<workflow-type-prefix>'`:                                          "August",
		`WorkflowId STARTS_WITH "order-"`:                                                            "early August tilde",
		`WorkflowId BETWEEN "order-" AND "order-~"`:                                                  "early August",
		`ExecutionStatus = 'Completed'`:                                                              "ended early",
		`WorkflowType = 'YourWorkflow'`:                                                              "tilde",
		`ExecutionStatus IN ('ContinuedAsNew', 'TimedOut')`:                                          "tilde",
		`ExecutionDuration > '1h'`:                                                                   "ended early August",
		`ExecutionDuration >= '1h30m' AND ExecutionDuration < '24h'`:                                 "August",
		`HistoryLength > 5`:                              "ended",
		`CloseTime IS NULL`:                              "open",
		`CloseTime is not null`:                          "ended early August tilde",
		`TemporalScheduledById = 'nightly'`:              "tilde",
		`SomeFlag = true`:                                "tilde",
		`CustomIntField > 1 order by CustomIntField asc`: "early August",
		`order by ExecutionTime`:                         "open ended early August tilde",
		`order by StartTime desc, CloseTime asc`:         "open ended early August tilde",
		"`YourCustomSA` = 'YourCustomSAValue'":           "open ended",
	} {
		q, err := query.Parse(text, now)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		for _, name := range []string{"open", "ended", "early", "August", "tilde"} {
			if q.Matches(rows[name]) {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// What Temporal's documentation allows and this language refuses, with what the error says. An
// attribute of its type Text is split into words there and compared as a whole here: its
// "Description = 'foobar'" is "Description CONTAINS 'foobar'".
func TestTemporalFiltersRefused(t *testing.T) {
	for text, why := range map[string]string{
		// A number says nothing of its unit.
		"StartTime > 1638360000000000000": "want a time such as",
		"ExecutionDuration > 60000000000": "want a length of time such as",
		"ExecutionDuration > '00:01:00'":  "want a length of time such as",
		// Rows have no such fields.
		"TaskQueue = 'q'":                               "Drover has no such one",
		"StateTransitionCount > 5":                      "Drover has no such one",
		"HistorySizeBytes > 5":                          "Drover has no such one",
		"BuildIds = 'versioned:1'":                      "Drover has no such one",
		"WorkflowVersioningBehavior = 'pinned'":         "Drover has no such one",
		"TemporalWorkflowVersioningBehavior = 'pinned'": "Drover has no such one",
		"SchedulePaused = true":                         "Drover has no such one",
		"TemporalSchedulePaused = true":                 "Drover has no such one",
		"TemporalChangeVersion = 'a-1'":                 "Drover has no such one",
		"BatcherUser = 'me'":                            "Drover has no such one",
	} {
		if e := refused(t, text); !strings.Contains(e.Error(), why) {
			t.Errorf("%s: got %v, want %q", text, e, why)
		}
	}
}
