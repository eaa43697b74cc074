package ops

import "github.com/droverhq/drover/schemas"

// DeleteRequest asks the master of the namespace to purge one closed run now: delete.
type DeleteRequest struct {
	V          int    `json:"v,omitempty"`
	WorkflowID string `json:"workflowId"`
	// Run is which one. Defaults to the latest.
	Run      string `json:"run,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Identity string `json:"identity,omitempty"`
	// Job is the bulk job on whose behalf it is asked. What that deletes is not noted run by run.
	Job string `json:"job,omitempty"`
}

// DeleteResponse says what was purged.
type DeleteResponse struct {
	V          int    `json:"v,omitempty"`
	WorkflowID string `json:"workflowId"`
	Run        string `json:"run,omitempty"`
	// Runs is how many have gone: the run, those of its chain before it, and the parts of its flow.
	Runs int `json:"runs,omitempty"`
	// Soft: the run was purged from disk before, and was kept in the memory of the master.
	Soft  bool           `json:"soft,omitempty"`
	Error *schemas.Error `json:"error,omitempty"`
}
