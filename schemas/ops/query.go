package ops

import "github.com/droverhq/drover/schemas"

// QueryRequest asks the index for runs: query.
type QueryRequest struct {
	V int `json:"v,omitempty"`
	// Query is what is looked for, as in status = 'failed' AND started > now-24h ORDER BY closed
	// DESC LIMIT 50. Empty, it is all runs, the newest first.
	Query string `json:"query,omitempty"`
	// Filter is a condition that must hold as well, without ORDER BY and LIMIT. Defaults to none.
	Filter string `json:"filter,omitempty"`
	// Limit is how many runs the page has at most. Defaults to 100, at most 1,000.
	Limit int `json:"limit,omitempty"`
	// Cursor continues after a page: that of its answer.
	Cursor string `json:"cursor,omitempty"`
	// Wait is how long the answer may wait until the index has read all that was written before the
	// request, at most 10 s. Defaults to 0.
	Wait schemas.Duration `json:"wait,omitempty"`
}

// FoundRun is a run as the index knows it.
type FoundRun struct {
	schemas.ExecutionInfo
	// FirstRun is the first run of its chain; empty in that run itself.
	FirstRun string `json:"firstRun,omitempty"`
	// Reason is why it has failed: the first 120 bytes.
	Reason string `json:"reason,omitempty"`
}

// IndexState says what an answer of the index rests on.
type IndexState struct {
	// Node has answered.
	Node string `json:"node,omitempty"`
	// Building is the part of the histories that was read, above 0 and below 1, while the index is
	// being built: runs are missing. Else it is left out.
	Building float64 `json:"building,omitempty"`
	// Lag is how many records stood in the histories when the answer was made, and did not count
	// yet. It is never less than that, may be more, and is -1 if the streams could not be asked.
	Lag int64 `json:"lag"`
	// Gone is how many closed runs have left the index, since its memory is bounded; the oldest
	// leave first.
	Gone int64 `json:"gone,omitempty"`
}

// QueryResponse is a page of runs; Cursor continues it and is empty at the end.
type QueryResponse struct {
	V int `json:"v,omitempty"`
	// Runs are the page, in the order of the query.
	Runs []FoundRun `json:"runs"`
	// Index is what the answer rests on.
	Index IndexState     `json:"index"`
	Error *schemas.Error `json:"error,omitempty"`
	// Cursor is set if there may be more.
	Cursor string `json:"cursor,omitempty"`
}

// GroupsRequest asks the index how many runs there are: groups.
type GroupsRequest struct {
	V int `json:"v,omitempty"`
	// Query is what is counted, as in started > now-24h GROUP BY status, type. Empty, it is all
	// runs. Without GROUP BY there is one group.
	Query string `json:"query,omitempty"`
	// Filter is a condition that must hold as well. Defaults to none.
	Filter string `json:"filter,omitempty"`
	// Wait is how long the answer may wait until the index has read all that was written before the
	// request, at most 10 s. Defaults to 0.
	Wait schemas.Duration `json:"wait,omitempty"`
}

// RunGroup is how many runs have the same values.
type RunGroup struct {
	// Values are those of the columns; empty where a run has none.
	Values []string `json:"values,omitempty"`
	Count  int64    `json:"count"`
}

// GroupsResponse is the answer to [GroupsRequest].
type GroupsResponse struct {
	V int `json:"v,omitempty"`
	// Columns are what GROUP BY names.
	Columns []string `json:"columns,omitempty"`
	// Groups are in the order of their counts, the largest first: at most 1,000.
	Groups []RunGroup `json:"groups"`
	// All is how many groups there are.
	All int64 `json:"all"`
	// Total is how many runs there are in all groups.
	Total int64 `json:"total"`
	// Index is what the answer rests on.
	Index IndexState     `json:"index"`
	Error *schemas.Error `json:"error,omitempty"`
}

// PurgedRun says that a run was purged from disk: a message on drover.<ns>.purged.<p>.
type PurgedRun struct {
	V          int    `json:"v,omitempty"`
	WorkflowID string `json:"workflowId"`
	Run        string `json:"run"`
	// Sequence was that of its last record.
	Sequence uint64 `json:"sequence"`
}
