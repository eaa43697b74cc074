package actor

// The kinds of inbox messages between workflows.
const (
	KindStart    = "start"
	KindActivity = "act"
	KindChild    = "child"
	KindSignal   = "signal"
	KindCancel   = "cancel"
	KindEnd      = "terminate"
	KindExternal = "external"

	KindBreakLock = "breakLock"
	VerbHold      = "hold"
	VerbRelease   = "release"

	// Of an operator who wants a run repeated.
	KindReplay      = "replay"
	KindReplayForce = "replayForce"
)

// VerbHeader names the API verb of a request that a broker passes on to the owner of a partition.
const VerbHeader = "Drover-Verb"
