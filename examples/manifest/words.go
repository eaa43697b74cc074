package main

import "fmt"

// What the decider, the activities and whoever starts a run have in common: names, inputs and results.

const (
	workflowType = "manifest"
	taskList     = "manifest"

	activityList  = "list"
	activityHash  = "hash"
	activityWrite = "write"
)

// request is the input of a run. All paths are absolute and UTF-8.
type request struct {
	// Dir is the folder; names in the manifest are relative to it.
	Dir string `json:"dir"`
	// Out is the manifest. It is replaced at the end of the run, and never lists itself.
	Out string `json:"out"`
	// Scratch is a folder of this run that every worker can reach.
	Scratch string `json:"scratch"`
	// Given says that the names stand in the scratch folder; else the folder is walked.
	Given bool `json:"given,omitempty"`
	// Width is how many files are hashed at a time.
	Width int `json:"width"`
}

// maxWidth stays below the number of activities that a run may have open.
const maxWidth = 500

func (r *request) validate() error {
	switch {
	case r.Dir == "" || r.Out == "" || r.Scratch == "":
		return fmt.Errorf("dir is %q, out is %q, scratch is %q: name all three", r.Dir, r.Out, r.Scratch)
	case r.Width < 1 || r.Width > maxWidth:
		return fmt.Errorf("width is %d: use 1 to %d", r.Width, maxWidth)
	}
	return nil
}

// listing is the result of the list activity: where the names stand, not the names. Ten thousand of them would not fit
// a message, and a file name need not be UTF-8, which JSON demands.
type listing struct {
	Names string `json:"names"`
	Files int    `json:"files"`
}

// hashing asks for the digest of the N-th file.
type hashing struct {
	Dir     string `json:"dir"`
	Scratch string `json:"scratch"`
	Names   string `json:"names"`
	N       int    `json:"n"`
}

// hashed is the result: the digest goes into the scratch folder, since its reader is the write activity.
type hashed struct {
	Bytes int64 `json:"bytes"`
}

// writing asks for the manifest.
type writing struct {
	Out     string `json:"out"`
	Scratch string `json:"scratch"`
	Names   string `json:"names"`
}

// summary is the result of the run.
type summary struct {
	Manifest string `json:"manifest"`
	Files    int    `json:"files"`
	Bytes    int64  `json:"bytes"`
}
