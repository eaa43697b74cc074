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

// The types implement [DecisionAttributes].

func (*ScheduleActivity) DecisionType() DecisionType      { return DecideScheduleActivity }
func (*RequestCancelActivity) DecisionType() DecisionType { return DecideRequestCancelActivity }
func (*ScheduleTimer) DecisionType() DecisionType         { return DecideScheduleTimer }
func (*CancelTimer) DecisionType() DecisionType           { return DecideCancelTimer }
func (*RecordMarker) DecisionType() DecisionType          { return DecideRecordMarker }
func (*StartChild) DecisionType() DecisionType            { return DecideStartChild }
func (*SignalExternal) DecisionType() DecisionType        { return DecideSignalExternal }
func (*CancelExternal) DecisionType() DecisionType        { return DecideCancelExternal }
func (*AcquireLock) DecisionType() DecisionType           { return DecideAcquireLock }
func (*ReleaseLock) DecisionType() DecisionType           { return DecideReleaseLock }
func (*GetState) DecisionType() DecisionType              { return DecideGetState }
func (*SetState) DecisionType() DecisionType              { return DecideSetState }
func (*ClearState) DecisionType() DecisionType            { return DecideClearState }
func (*SetReplayPoint) DecisionType() DecisionType        { return DecideSetReplayPoint }
func (*ResetReplayPoints) DecisionType() DecisionType     { return DecideResetReplayPoints }
func (*SetRetention) DecisionType() DecisionType          { return DecideSetRetention }
func (*SetAttributes) DecisionType() DecisionType         { return DecideSetAttributes }
func (*CompleteWorkflow) DecisionType() DecisionType      { return DecideCompleteWorkflow }
func (*FailWorkflow) DecisionType() DecisionType          { return DecideFailWorkflow }
func (*CancelWorkflow) DecisionType() DecisionType        { return DecideCancelWorkflow }
func (*ContinueAsNew) DecisionType() DecisionType         { return DecideContinueAsNew }
