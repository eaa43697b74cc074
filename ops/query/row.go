package query

import "github.com/droverhq/drover/schemas"

// Row is one run as the index knows it. An empty text and a time of 0 are absent, also an attribute
// that is empty.
type Row struct {
	WorkflowID string
	Run        string
	Type       string
	Version    string // of the type
	Status     schemas.Status
	Started    schemas.Timestamp
	Closed     schemas.Timestamp // 0 while the run is open
	Events     int64             // how many its history has
	Tags       []string
	Parent     string // workflow id of the parent
	First      string // first run of its chain; empty in that run itself
	Reason     string // why a failed run failed
	StartMode  string // one of schemas.StartModes
	Schedule   string // the schedule that started it
	Attributes map[string]string
	Partition  int
	Sequence   uint64 // of its last record
}
