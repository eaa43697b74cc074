package schemas

// TimerScheduled arms a named timer.
type TimerScheduled struct {
	TimerID                 string   `json:"timerId"`
	StartToFireTimeout      Duration `json:"startToFireTimeout"`
	Control                 Payload  `json:"control,omitempty"`
	DeciderCompletedEventID int64    `json:"deciderCompletedEventId"`
}

// TimerExpired says that a timer's time has come.
type TimerExpired struct {
	TimerID          string `json:"timerId"`
	ScheduledEventID int64  `json:"scheduledEventId"`
}

// TimerCanceled takes a timer back; it will never expire.
type TimerCanceled struct {
	TimerID                 string `json:"timerId"`
	ScheduledEventID        int64  `json:"scheduledEventId"`
	DeciderCompletedEventID int64  `json:"deciderCompletedEventId"`
}

// TimerScheduleFailed refuses a timer.
type TimerScheduleFailed struct {
	TimerID                 string `json:"timerId"`
	Cause                   Cause  `json:"cause"`
	Details                 string `json:"details,omitempty"`
	DeciderCompletedEventID int64  `json:"deciderCompletedEventId"`
}

// TimerCancelFailed refuses to cancel a timer: it expired before, or never was.
type TimerCancelFailed struct {
	TimerID                 string `json:"timerId"`
	Cause                   Cause  `json:"cause"`
	DeciderCompletedEventID int64  `json:"deciderCompletedEventId"`
}
