package broker

import "github.com/droverhq/drover/schemas"

// sizeOf estimates the encoded size of an event, payloads above all.
func sizeOf(e schemas.Event) int {
	const frame = 300
	switch a := e.Attributes.(type) {
	case *schemas.WorkflowStarted:
		return frame + 4*len(a.Input)/3
	case *schemas.Signal:
		return frame + 4*len(a.Input)/3
	case *schemas.ActivityScheduled:
		return frame + 4*(len(a.Input)+len(a.Control))/3
	case *schemas.ActivitySuccess:
		return frame + 4*len(a.Result)/3
	case *schemas.ActivityFailed:
		return frame + 4*len(a.Details)/3 + len(a.Reason)
	case *schemas.Marker:
		return frame + 4*len(a.Details)/3
	case *schemas.DeciderCompleted:
		return frame + 4*len(a.ExecutionContext)/3
	case *schemas.DeciderFailed:
		return frame + len(a.Details) + len(a.Reason)
	case *schemas.ActivityTimedOut:
		return frame + 4*len(a.Details)/3
	case *schemas.ActivityCanceled:
		return frame + 4*len(a.Details)/3
	case *schemas.ActivityRetryScheduled:
		return frame + 4*(len(a.Details)+len(a.HeartbeatDetails))/3
	case *schemas.ActivityInterrupted:
		return frame + 4*len(a.HeartbeatDetails)/3
	}
	return frame + exchangeSize(e)
}

// exchangeSize is what an event about another workflow carries.
func exchangeSize(e schemas.Event) int {
	switch a := e.Attributes.(type) {
	case *schemas.ChildScheduled:
		return 4 * (len(a.Input) + len(a.Control)) / 3
	case *schemas.ChildSuccess:
		return 4 * len(a.Result) / 3
	case *schemas.ChildFailed:
		return 4*len(a.Details)/3 + len(a.Reason)
	case *schemas.ChildCanceled:
		return 4 * len(a.Details) / 3
	case *schemas.SignalExternalScheduled:
		return 4 * (len(a.Input) + len(a.Control)) / 3
	case *schemas.TimerScheduled:
		return 4 * len(a.Control) / 3
	}
	return 0
}
