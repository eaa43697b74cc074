package schemas

// types is the one table of the vocabulary: how to make the attributes, who causes the event,
// whether it wakes a decider and whether it ends the run.
var types = map[EventType]typeInfo{
	EventWorkflowStarted:  {make: of[WorkflowStarted], group: GroupService, wakes: true},
	EventWorkflowTimedOut: {make: of[WorkflowTimedOut], group: GroupService, closes: true},
	EventWorkflowTerminated: {
		make:   of[WorkflowTerminated],
		group:  GroupService,
		closes: true,
	},
	EventWorkflowCancelRequested: {
		make:  of[WorkflowCancelRequested],
		group: GroupService,
		wakes: true,
	},
	EventWorkflowPaused:  {make: of[WorkflowPaused], group: GroupService},
	EventWorkflowResumed: {make: of[WorkflowResumed], group: GroupService, wakes: true},
	EventContinuationSuggested: {
		make:  of[ContinuationSuggested],
		group: GroupService,
		wakes: true,
	},
	EventContinuationHeld:     {make: of[ContinuationHeld], group: GroupService},
	EventContinuationReleased: {make: of[ContinuationReleased], group: GroupService},
	EventDeciderScheduled:     {make: of[DeciderScheduled], group: GroupService},
	EventDeciderStarted:       {make: of[DeciderStarted], group: GroupService},
	EventDeciderCompleted:     {make: of[DeciderCompleted], group: GroupService},
	EventDeciderTimedOut:      {make: of[DeciderTimedOut], group: GroupService, wakes: true},
	EventDeciderFailed:        {make: of[DeciderFailed], group: GroupService, wakes: true},
	EventActivityStarted:      {make: of[ActivityStarted], group: GroupService},
	EventActivityTimedOut:     {make: of[ActivityTimedOut], group: GroupService, wakes: true},
	EventActivityScheduledTimeout: {
		make:  of[ActivityScheduledTimeout],
		group: GroupService,
		wakes: true,
	},
	EventActivityInterrupted:     {make: of[ActivityInterrupted], group: GroupService},
	EventActivityRetryScheduled:  {make: of[ActivityRetryScheduled], group: GroupService},
	EventTimerExpired:            {make: of[TimerExpired], group: GroupService, wakes: true},
	EventChildStarted:            {make: of[ChildStarted], group: GroupService},
	EventChildSuccess:            {make: of[ChildSuccess], group: GroupService, wakes: true},
	EventChildFailed:             {make: of[ChildFailed], group: GroupService, wakes: true},
	EventChildTimedOut:           {make: of[ChildTimedOut], group: GroupService, wakes: true},
	EventChildCanceled:           {make: of[ChildCanceled], group: GroupService, wakes: true},
	EventChildTerminated:         {make: of[ChildTerminated], group: GroupService, wakes: true},
	EventExternalSignaled:        {make: of[ExternalSignaled], group: GroupService},
	EventExternalCancelRequested: {make: of[ExternalCancelRequested], group: GroupService},
	EventLockAcquired:            {make: of[LockAcquired], group: GroupService, wakes: true},
	EventLockBroken:              {make: of[LockBroken], group: GroupService},
	EventStateRead:               {make: of[StateRead], group: GroupService, wakes: true},
	EventStateSet:                {make: of[StateSet], group: GroupService, wakes: true},
	EventStateCleared:            {make: of[StateCleared], group: GroupService, wakes: true},
	EventStateRefused:            {make: of[StateRefused], group: GroupService, wakes: true},
	EventActivityScheduleFailed: {
		make:  of[ActivityScheduleFailed],
		group: GroupService,
		wakes: true,
	},
	EventActivityCancelFailed: {
		make:  of[ActivityCancelFailed],
		group: GroupService,
		wakes: true,
	},
	EventTimerScheduleFailed: {
		make:  of[TimerScheduleFailed],
		group: GroupService,
		wakes: true,
	},
	EventTimerCancelFailed: {make: of[TimerCancelFailed], group: GroupService, wakes: true},
	EventMarkerFailed:      {make: of[MarkerFailed], group: GroupService, wakes: true},
	EventChildStartFailed:  {make: of[ChildStartFailed], group: GroupService, wakes: true},
	EventSignalExternalFailed: {
		make:  of[SignalExternalFailed],
		group: GroupService,
		wakes: true,
	},
	EventCancelExternalFailed: {
		make:  of[CancelExternalFailed],
		group: GroupService,
		wakes: true,
	},
	EventLockRefused: {make: of[LockRefused], group: GroupService, wakes: true},
	EventWorkflowCloseFailed: {
		make:  of[WorkflowCloseFailed],
		group: GroupService,
		wakes: true,
	},
	EventActivityScheduled:       {make: of[ActivityScheduled], group: GroupDecider},
	EventActivityCancelRequested: {make: of[ActivityCancelRequested], group: GroupDecider},
	EventTimerScheduled:          {make: of[TimerScheduled], group: GroupDecider},
	EventTimerCanceled:           {make: of[TimerCanceled], group: GroupDecider},
	EventMarker:                  {make: of[Marker], group: GroupDecider},
	EventChildScheduled:          {make: of[ChildScheduled], group: GroupDecider},
	EventSignalExternalScheduled: {make: of[SignalExternalScheduled], group: GroupDecider},
	EventCancelExternalScheduled: {make: of[CancelExternalScheduled], group: GroupDecider},
	EventLockRequested:           {make: of[LockRequested], group: GroupDecider},
	EventLockReleased:            {make: of[LockReleased], group: GroupDecider},
	EventStateRequested:          {make: of[StateRequested], group: GroupDecider},
	EventReplayPointSet:          {make: of[ReplayPointSet], group: GroupDecider},
	EventReplayPointsReset:       {make: of[ReplayPointsReset], group: GroupDecider},
	EventRetentionSet:            {make: of[RetentionSet], group: GroupDecider},
	EventAttributesSet:           {make: of[AttributesSet], group: GroupDecider},
	EventWorkflowSuccess:         {make: of[WorkflowSuccess], group: GroupDecider, closes: true},
	EventWorkflowFailed:          {make: of[WorkflowFailed], group: GroupDecider, closes: true},
	EventWorkflowCanceled:        {make: of[WorkflowCanceled], group: GroupDecider, closes: true},
	EventWorkflowContinuedAsNew: {
		make:   of[WorkflowContinuedAsNew],
		group:  GroupDecider,
		closes: true,
	},
	EventActivitySuccess:  {make: of[ActivitySuccess], group: GroupActivity, wakes: true},
	EventActivityFailed:   {make: of[ActivityFailed], group: GroupActivity, wakes: true},
	EventActivityCanceled: {make: of[ActivityCanceled], group: GroupActivity, wakes: true},
	EventSignal:           {make: of[Signal], group: GroupExternal, wakes: true},
}

// of makes empty attributes of a type.
func of[T any, A interface {
	*T
	Attributes
}]() Attributes {
	return A(new(T))
}

// The types implement [Attributes].

func (*WorkflowStarted) EventType() EventType          { return EventWorkflowStarted }
func (*WorkflowTimedOut) EventType() EventType         { return EventWorkflowTimedOut }
func (*WorkflowTerminated) EventType() EventType       { return EventWorkflowTerminated }
func (*WorkflowCancelRequested) EventType() EventType  { return EventWorkflowCancelRequested }
func (*WorkflowPaused) EventType() EventType           { return EventWorkflowPaused }
func (*WorkflowResumed) EventType() EventType          { return EventWorkflowResumed }
func (*ContinuationSuggested) EventType() EventType    { return EventContinuationSuggested }
func (*ContinuationHeld) EventType() EventType         { return EventContinuationHeld }
func (*ContinuationReleased) EventType() EventType     { return EventContinuationReleased }
func (*DeciderScheduled) EventType() EventType         { return EventDeciderScheduled }
func (*DeciderStarted) EventType() EventType           { return EventDeciderStarted }
func (*DeciderCompleted) EventType() EventType         { return EventDeciderCompleted }
func (*DeciderTimedOut) EventType() EventType          { return EventDeciderTimedOut }
func (*DeciderFailed) EventType() EventType            { return EventDeciderFailed }
func (*ActivityStarted) EventType() EventType          { return EventActivityStarted }
func (*ActivityTimedOut) EventType() EventType         { return EventActivityTimedOut }
func (*ActivityScheduledTimeout) EventType() EventType { return EventActivityScheduledTimeout }
func (*ActivityInterrupted) EventType() EventType      { return EventActivityInterrupted }
func (*ActivityRetryScheduled) EventType() EventType   { return EventActivityRetryScheduled }
func (*TimerExpired) EventType() EventType             { return EventTimerExpired }
func (*ChildStarted) EventType() EventType             { return EventChildStarted }
func (*ChildSuccess) EventType() EventType             { return EventChildSuccess }
func (*ChildFailed) EventType() EventType              { return EventChildFailed }
func (*ChildTimedOut) EventType() EventType            { return EventChildTimedOut }
func (*ChildCanceled) EventType() EventType            { return EventChildCanceled }
func (*ChildTerminated) EventType() EventType          { return EventChildTerminated }
func (*ExternalSignaled) EventType() EventType         { return EventExternalSignaled }
func (*ExternalCancelRequested) EventType() EventType  { return EventExternalCancelRequested }
func (*LockAcquired) EventType() EventType             { return EventLockAcquired }
func (*LockBroken) EventType() EventType               { return EventLockBroken }
func (*LockRefused) EventType() EventType              { return EventLockRefused }
func (*StateRead) EventType() EventType                { return EventStateRead }
func (*StateSet) EventType() EventType                 { return EventStateSet }
func (*StateCleared) EventType() EventType             { return EventStateCleared }
func (*StateRefused) EventType() EventType             { return EventStateRefused }
func (*ActivityScheduleFailed) EventType() EventType   { return EventActivityScheduleFailed }
func (*ActivityCancelFailed) EventType() EventType     { return EventActivityCancelFailed }
func (*TimerScheduleFailed) EventType() EventType      { return EventTimerScheduleFailed }
func (*TimerCancelFailed) EventType() EventType        { return EventTimerCancelFailed }
func (*MarkerFailed) EventType() EventType             { return EventMarkerFailed }
func (*ChildStartFailed) EventType() EventType         { return EventChildStartFailed }
func (*SignalExternalFailed) EventType() EventType     { return EventSignalExternalFailed }
func (*CancelExternalFailed) EventType() EventType     { return EventCancelExternalFailed }
func (*WorkflowCloseFailed) EventType() EventType      { return EventWorkflowCloseFailed }
func (*ActivityScheduled) EventType() EventType        { return EventActivityScheduled }
func (*ActivityCancelRequested) EventType() EventType  { return EventActivityCancelRequested }
func (*TimerScheduled) EventType() EventType           { return EventTimerScheduled }
func (*TimerCanceled) EventType() EventType            { return EventTimerCanceled }
func (*Marker) EventType() EventType                   { return EventMarker }
func (*ChildScheduled) EventType() EventType           { return EventChildScheduled }
func (*SignalExternalScheduled) EventType() EventType  { return EventSignalExternalScheduled }
func (*CancelExternalScheduled) EventType() EventType  { return EventCancelExternalScheduled }
func (*LockRequested) EventType() EventType            { return EventLockRequested }
func (*LockReleased) EventType() EventType             { return EventLockReleased }
func (*StateRequested) EventType() EventType           { return EventStateRequested }
func (*ReplayPointSet) EventType() EventType           { return EventReplayPointSet }
func (*ReplayPointsReset) EventType() EventType        { return EventReplayPointsReset }
func (*RetentionSet) EventType() EventType             { return EventRetentionSet }
func (*AttributesSet) EventType() EventType            { return EventAttributesSet }
func (*WorkflowSuccess) EventType() EventType          { return EventWorkflowSuccess }
func (*WorkflowFailed) EventType() EventType           { return EventWorkflowFailed }
func (*WorkflowCanceled) EventType() EventType         { return EventWorkflowCanceled }
func (*WorkflowContinuedAsNew) EventType() EventType   { return EventWorkflowContinuedAsNew }
func (*ActivitySuccess) EventType() EventType          { return EventActivitySuccess }
func (*ActivityFailed) EventType() EventType           { return EventActivityFailed }
func (*ActivityCanceled) EventType() EventType         { return EventActivityCanceled }
func (*Signal) EventType() EventType                   { return EventSignal }
