package schemas

// decisions is the one table of decision types.
var decisions = map[DecisionType]func() DecisionAttributes{
	DecideScheduleActivity:      func() DecisionAttributes { return new(ScheduleActivity) },
	DecideRequestCancelActivity: func() DecisionAttributes { return new(RequestCancelActivity) },
	DecideScheduleTimer:         func() DecisionAttributes { return new(ScheduleTimer) },
	DecideCancelTimer:           func() DecisionAttributes { return new(CancelTimer) },
	DecideRecordMarker:          func() DecisionAttributes { return new(RecordMarker) },
	DecideStartChild:            func() DecisionAttributes { return new(StartChild) },
	DecideSignalExternal:        func() DecisionAttributes { return new(SignalExternal) },
	DecideCancelExternal:        func() DecisionAttributes { return new(CancelExternal) },
	DecideAcquireLock:           func() DecisionAttributes { return new(AcquireLock) },
	DecideReleaseLock:           func() DecisionAttributes { return new(ReleaseLock) },
	DecideGetState:              func() DecisionAttributes { return new(GetState) },
	DecideSetState:              func() DecisionAttributes { return new(SetState) },
	DecideClearState:            func() DecisionAttributes { return new(ClearState) },
	DecideSetReplayPoint:        func() DecisionAttributes { return new(SetReplayPoint) },
	DecideResetReplayPoints:     func() DecisionAttributes { return new(ResetReplayPoints) },
	DecideSetRetention:          func() DecisionAttributes { return new(SetRetention) },
	DecideSetAttributes:         func() DecisionAttributes { return new(SetAttributes) },
	DecideCompleteWorkflow:      func() DecisionAttributes { return new(CompleteWorkflow) },
	DecideFailWorkflow:          func() DecisionAttributes { return new(FailWorkflow) },
	DecideCancelWorkflow:        func() DecisionAttributes { return new(CancelWorkflow) },
	DecideContinueAsNew:         func() DecisionAttributes { return new(ContinueAsNew) },
}

// DecisionType implements [DecisionAttributes].
func (*ScheduleActivity) DecisionType() DecisionType { return DecideScheduleActivity }

// DecisionType implements [DecisionAttributes].
func (*RequestCancelActivity) DecisionType() DecisionType { return DecideRequestCancelActivity }

// DecisionType implements [DecisionAttributes].
func (*ScheduleTimer) DecisionType() DecisionType { return DecideScheduleTimer }

// DecisionType implements [DecisionAttributes].
func (*CancelTimer) DecisionType() DecisionType { return DecideCancelTimer }

// DecisionType implements [DecisionAttributes].
func (*RecordMarker) DecisionType() DecisionType { return DecideRecordMarker }

// DecisionType implements [DecisionAttributes].
func (*StartChild) DecisionType() DecisionType { return DecideStartChild }

// DecisionType implements [DecisionAttributes].
func (*SignalExternal) DecisionType() DecisionType { return DecideSignalExternal }

// DecisionType implements [DecisionAttributes].
func (*CancelExternal) DecisionType() DecisionType { return DecideCancelExternal }

// DecisionType implements [DecisionAttributes].
func (*AcquireLock) DecisionType() DecisionType { return DecideAcquireLock }

// DecisionType implements [DecisionAttributes].
func (*ReleaseLock) DecisionType() DecisionType { return DecideReleaseLock }

// DecisionType implements [DecisionAttributes].
func (*GetState) DecisionType() DecisionType { return DecideGetState }

// DecisionType implements [DecisionAttributes].
func (*SetState) DecisionType() DecisionType { return DecideSetState }

// DecisionType implements [DecisionAttributes].
func (*ClearState) DecisionType() DecisionType { return DecideClearState }

// DecisionType implements [DecisionAttributes].
func (*SetReplayPoint) DecisionType() DecisionType { return DecideSetReplayPoint }

// DecisionType implements [DecisionAttributes].
func (*ResetReplayPoints) DecisionType() DecisionType { return DecideResetReplayPoints }

// DecisionType implements [DecisionAttributes].
func (*SetRetention) DecisionType() DecisionType { return DecideSetRetention }

// DecisionType implements [DecisionAttributes].
func (*SetAttributes) DecisionType() DecisionType { return DecideSetAttributes }

// DecisionType implements [DecisionAttributes].
func (*CompleteWorkflow) DecisionType() DecisionType { return DecideCompleteWorkflow }

// DecisionType implements [DecisionAttributes].
func (*FailWorkflow) DecisionType() DecisionType { return DecideFailWorkflow }

// DecisionType implements [DecisionAttributes].
func (*CancelWorkflow) DecisionType() DecisionType { return DecideCancelWorkflow }

// DecisionType implements [DecisionAttributes].
func (*ContinueAsNew) DecisionType() DecisionType { return DecideContinueAsNew }
