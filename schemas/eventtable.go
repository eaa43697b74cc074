package schemas

// types is the one table of the vocabulary: how to make the attributes, who causes the event, whether it wakes a decider
// and whether it ends the run.
var types = map[EventType]typeInfo{
	EventWorkflowStarted:          {make: func() Attributes { return new(WorkflowStarted) }, group: GroupService, wakes: true},
	EventWorkflowTimedOut:         {make: func() Attributes { return new(WorkflowTimedOut) }, group: GroupService, closes: true},
	EventWorkflowTerminated:       {make: func() Attributes { return new(WorkflowTerminated) }, group: GroupService, closes: true},
	EventWorkflowCancelRequested:  {make: func() Attributes { return new(WorkflowCancelRequested) }, group: GroupService, wakes: true},
	EventWorkflowPaused:           {make: func() Attributes { return new(WorkflowPaused) }, group: GroupService},
	EventWorkflowResumed:          {make: func() Attributes { return new(WorkflowResumed) }, group: GroupService, wakes: true},
	EventContinuationSuggested:    {make: func() Attributes { return new(ContinuationSuggested) }, group: GroupService, wakes: true},
	EventContinuationHeld:         {make: func() Attributes { return new(ContinuationHeld) }, group: GroupService},
	EventContinuationReleased:     {make: func() Attributes { return new(ContinuationReleased) }, group: GroupService},
	EventDeciderScheduled:         {make: func() Attributes { return new(DeciderScheduled) }, group: GroupService},
	EventDeciderStarted:           {make: func() Attributes { return new(DeciderStarted) }, group: GroupService},
	EventDeciderCompleted:         {make: func() Attributes { return new(DeciderCompleted) }, group: GroupService},
	EventDeciderTimedOut:          {make: func() Attributes { return new(DeciderTimedOut) }, group: GroupService, wakes: true},
	EventDeciderFailed:            {make: func() Attributes { return new(DeciderFailed) }, group: GroupService, wakes: true},
	EventActivityStarted:          {make: func() Attributes { return new(ActivityStarted) }, group: GroupService},
	EventActivityTimedOut:         {make: func() Attributes { return new(ActivityTimedOut) }, group: GroupService, wakes: true},
	EventActivityScheduledTimeout: {make: func() Attributes { return new(ActivityScheduledTimeout) }, group: GroupService, wakes: true},
	EventActivityInterrupted:      {make: func() Attributes { return new(ActivityInterrupted) }, group: GroupService},
	EventActivityRetryScheduled:   {make: func() Attributes { return new(ActivityRetryScheduled) }, group: GroupService},
	EventTimerExpired:             {make: func() Attributes { return new(TimerExpired) }, group: GroupService, wakes: true},
	EventChildStarted:             {make: func() Attributes { return new(ChildStarted) }, group: GroupService},
	EventChildSuccess:             {make: func() Attributes { return new(ChildSuccess) }, group: GroupService, wakes: true},
	EventChildFailed:              {make: func() Attributes { return new(ChildFailed) }, group: GroupService, wakes: true},
	EventChildTimedOut:            {make: func() Attributes { return new(ChildTimedOut) }, group: GroupService, wakes: true},
	EventChildCanceled:            {make: func() Attributes { return new(ChildCanceled) }, group: GroupService, wakes: true},
	EventChildTerminated:          {make: func() Attributes { return new(ChildTerminated) }, group: GroupService, wakes: true},
	EventExternalSignaled:         {make: func() Attributes { return new(ExternalSignaled) }, group: GroupService},
	EventExternalCancelRequested:  {make: func() Attributes { return new(ExternalCancelRequested) }, group: GroupService},
	EventLockAcquired:             {make: func() Attributes { return new(LockAcquired) }, group: GroupService, wakes: true},
	EventLockBroken:               {make: func() Attributes { return new(LockBroken) }, group: GroupService},
	EventStateRead:                {make: func() Attributes { return new(StateRead) }, group: GroupService, wakes: true},
	EventStateSet:                 {make: func() Attributes { return new(StateSet) }, group: GroupService, wakes: true},
	EventStateCleared:             {make: func() Attributes { return new(StateCleared) }, group: GroupService, wakes: true},
	EventStateRefused:             {make: func() Attributes { return new(StateRefused) }, group: GroupService, wakes: true},
	EventActivityScheduleFailed:   {make: func() Attributes { return new(ActivityScheduleFailed) }, group: GroupService, wakes: true},
	EventActivityCancelFailed:     {make: func() Attributes { return new(ActivityCancelFailed) }, group: GroupService, wakes: true},
	EventTimerScheduleFailed:      {make: func() Attributes { return new(TimerScheduleFailed) }, group: GroupService, wakes: true},
	EventTimerCancelFailed:        {make: func() Attributes { return new(TimerCancelFailed) }, group: GroupService, wakes: true},
	EventMarkerFailed:             {make: func() Attributes { return new(MarkerFailed) }, group: GroupService, wakes: true},
	EventChildStartFailed:         {make: func() Attributes { return new(ChildStartFailed) }, group: GroupService, wakes: true},
	EventSignalExternalFailed:     {make: func() Attributes { return new(SignalExternalFailed) }, group: GroupService, wakes: true},
	EventCancelExternalFailed:     {make: func() Attributes { return new(CancelExternalFailed) }, group: GroupService, wakes: true},
	EventLockRefused:              {make: func() Attributes { return new(LockRefused) }, group: GroupService, wakes: true},
	EventWorkflowCloseFailed:      {make: func() Attributes { return new(WorkflowCloseFailed) }, group: GroupService, wakes: true},
	EventActivityScheduled:        {make: func() Attributes { return new(ActivityScheduled) }, group: GroupDecider},
	EventActivityCancelRequested:  {make: func() Attributes { return new(ActivityCancelRequested) }, group: GroupDecider},
	EventTimerScheduled:           {make: func() Attributes { return new(TimerScheduled) }, group: GroupDecider},
	EventTimerCanceled:            {make: func() Attributes { return new(TimerCanceled) }, group: GroupDecider},
	EventMarker:                   {make: func() Attributes { return new(Marker) }, group: GroupDecider},
	EventChildScheduled:           {make: func() Attributes { return new(ChildScheduled) }, group: GroupDecider},
	EventSignalExternalScheduled:  {make: func() Attributes { return new(SignalExternalScheduled) }, group: GroupDecider},
	EventCancelExternalScheduled:  {make: func() Attributes { return new(CancelExternalScheduled) }, group: GroupDecider},
	EventLockRequested:            {make: func() Attributes { return new(LockRequested) }, group: GroupDecider},
	EventLockReleased:             {make: func() Attributes { return new(LockReleased) }, group: GroupDecider},
	EventStateRequested:           {make: func() Attributes { return new(StateRequested) }, group: GroupDecider},
	EventReplayPointSet:           {make: func() Attributes { return new(ReplayPointSet) }, group: GroupDecider},
	EventReplayPointsReset:        {make: func() Attributes { return new(ReplayPointsReset) }, group: GroupDecider},
	EventRetentionSet:             {make: func() Attributes { return new(RetentionSet) }, group: GroupDecider},
	EventAttributesSet:            {make: func() Attributes { return new(AttributesSet) }, group: GroupDecider},
	EventWorkflowSuccess:          {make: func() Attributes { return new(WorkflowSuccess) }, group: GroupDecider, closes: true},
	EventWorkflowFailed:           {make: func() Attributes { return new(WorkflowFailed) }, group: GroupDecider, closes: true},
	EventWorkflowCanceled:         {make: func() Attributes { return new(WorkflowCanceled) }, group: GroupDecider, closes: true},
	EventWorkflowContinuedAsNew:   {make: func() Attributes { return new(WorkflowContinuedAsNew) }, group: GroupDecider, closes: true},
	EventActivitySuccess:          {make: func() Attributes { return new(ActivitySuccess) }, group: GroupActivity, wakes: true},
	EventActivityFailed:           {make: func() Attributes { return new(ActivityFailed) }, group: GroupActivity, wakes: true},
	EventActivityCanceled:         {make: func() Attributes { return new(ActivityCanceled) }, group: GroupActivity, wakes: true},
	EventSignal:                   {make: func() Attributes { return new(Signal) }, group: GroupExternal, wakes: true},
}

// EventType implements [Attributes].
func (*WorkflowStarted) EventType() EventType { return EventWorkflowStarted }

// EventType implements [Attributes].
func (*WorkflowTimedOut) EventType() EventType { return EventWorkflowTimedOut }

// EventType implements [Attributes].
func (*WorkflowTerminated) EventType() EventType { return EventWorkflowTerminated }

// EventType implements [Attributes].
func (*WorkflowCancelRequested) EventType() EventType { return EventWorkflowCancelRequested }

// EventType implements [Attributes].
func (*WorkflowPaused) EventType() EventType { return EventWorkflowPaused }

// EventType implements [Attributes].
func (*WorkflowResumed) EventType() EventType { return EventWorkflowResumed }

// EventType implements [Attributes].
func (*ContinuationSuggested) EventType() EventType { return EventContinuationSuggested }

// EventType implements [Attributes].
func (*ContinuationHeld) EventType() EventType { return EventContinuationHeld }

// EventType implements [Attributes].
func (*ContinuationReleased) EventType() EventType { return EventContinuationReleased }

// EventType implements [Attributes].
func (*DeciderScheduled) EventType() EventType { return EventDeciderScheduled }

// EventType implements [Attributes].
func (*DeciderStarted) EventType() EventType { return EventDeciderStarted }

// EventType implements [Attributes].
func (*DeciderCompleted) EventType() EventType { return EventDeciderCompleted }

// EventType implements [Attributes].
func (*DeciderTimedOut) EventType() EventType { return EventDeciderTimedOut }

// EventType implements [Attributes].
func (*DeciderFailed) EventType() EventType { return EventDeciderFailed }

// EventType implements [Attributes].
func (*ActivityStarted) EventType() EventType { return EventActivityStarted }

// EventType implements [Attributes].
func (*ActivityTimedOut) EventType() EventType { return EventActivityTimedOut }

// EventType implements [Attributes].
func (*ActivityScheduledTimeout) EventType() EventType { return EventActivityScheduledTimeout }

// EventType implements [Attributes].
func (*ActivityInterrupted) EventType() EventType { return EventActivityInterrupted }

// EventType implements [Attributes].
func (*ActivityRetryScheduled) EventType() EventType { return EventActivityRetryScheduled }

// EventType implements [Attributes].
func (*TimerExpired) EventType() EventType { return EventTimerExpired }

// EventType implements [Attributes].
func (*ChildStarted) EventType() EventType { return EventChildStarted }

// EventType implements [Attributes].
func (*ChildSuccess) EventType() EventType { return EventChildSuccess }

// EventType implements [Attributes].
func (*ChildFailed) EventType() EventType { return EventChildFailed }

// EventType implements [Attributes].
func (*ChildTimedOut) EventType() EventType { return EventChildTimedOut }

// EventType implements [Attributes].
func (*ChildCanceled) EventType() EventType { return EventChildCanceled }

// EventType implements [Attributes].
func (*ChildTerminated) EventType() EventType { return EventChildTerminated }

// EventType implements [Attributes].
func (*ExternalSignaled) EventType() EventType { return EventExternalSignaled }

// EventType implements [Attributes].
func (*ExternalCancelRequested) EventType() EventType { return EventExternalCancelRequested }

// EventType implements [Attributes].
func (*LockAcquired) EventType() EventType { return EventLockAcquired }

// EventType implements [Attributes].
func (*LockBroken) EventType() EventType { return EventLockBroken }

// EventType implements [Attributes].
func (*LockRefused) EventType() EventType { return EventLockRefused }

// EventType implements [Attributes].
func (*StateRead) EventType() EventType { return EventStateRead }

// EventType implements [Attributes].
func (*StateSet) EventType() EventType { return EventStateSet }

// EventType implements [Attributes].
func (*StateCleared) EventType() EventType { return EventStateCleared }

// EventType implements [Attributes].
func (*StateRefused) EventType() EventType { return EventStateRefused }

// EventType implements [Attributes].
func (*ActivityScheduleFailed) EventType() EventType { return EventActivityScheduleFailed }

// EventType implements [Attributes].
func (*ActivityCancelFailed) EventType() EventType { return EventActivityCancelFailed }

// EventType implements [Attributes].
func (*TimerScheduleFailed) EventType() EventType { return EventTimerScheduleFailed }

// EventType implements [Attributes].
func (*TimerCancelFailed) EventType() EventType { return EventTimerCancelFailed }

// EventType implements [Attributes].
func (*MarkerFailed) EventType() EventType { return EventMarkerFailed }

// EventType implements [Attributes].
func (*ChildStartFailed) EventType() EventType { return EventChildStartFailed }

// EventType implements [Attributes].
func (*SignalExternalFailed) EventType() EventType { return EventSignalExternalFailed }

// EventType implements [Attributes].
func (*CancelExternalFailed) EventType() EventType { return EventCancelExternalFailed }

// EventType implements [Attributes].
func (*WorkflowCloseFailed) EventType() EventType { return EventWorkflowCloseFailed }

// EventType implements [Attributes].
func (*ActivityScheduled) EventType() EventType { return EventActivityScheduled }

// EventType implements [Attributes].
func (*ActivityCancelRequested) EventType() EventType { return EventActivityCancelRequested }

// EventType implements [Attributes].
func (*TimerScheduled) EventType() EventType { return EventTimerScheduled }

// EventType implements [Attributes].
func (*TimerCanceled) EventType() EventType { return EventTimerCanceled }

// EventType implements [Attributes].
func (*Marker) EventType() EventType { return EventMarker }

// EventType implements [Attributes].
func (*ChildScheduled) EventType() EventType { return EventChildScheduled }

// EventType implements [Attributes].
func (*SignalExternalScheduled) EventType() EventType { return EventSignalExternalScheduled }

// EventType implements [Attributes].
func (*CancelExternalScheduled) EventType() EventType { return EventCancelExternalScheduled }

// EventType implements [Attributes].
func (*LockRequested) EventType() EventType { return EventLockRequested }

// EventType implements [Attributes].
func (*LockReleased) EventType() EventType { return EventLockReleased }

// EventType implements [Attributes].
func (*StateRequested) EventType() EventType { return EventStateRequested }

// EventType implements [Attributes].
func (*ReplayPointSet) EventType() EventType { return EventReplayPointSet }

// EventType implements [Attributes].
func (*ReplayPointsReset) EventType() EventType { return EventReplayPointsReset }

// EventType implements [Attributes].
func (*RetentionSet) EventType() EventType { return EventRetentionSet }

// EventType implements [Attributes].
func (*AttributesSet) EventType() EventType { return EventAttributesSet }

// EventType implements [Attributes].
func (*WorkflowSuccess) EventType() EventType { return EventWorkflowSuccess }

// EventType implements [Attributes].
func (*WorkflowFailed) EventType() EventType { return EventWorkflowFailed }

// EventType implements [Attributes].
func (*WorkflowCanceled) EventType() EventType { return EventWorkflowCanceled }

// EventType implements [Attributes].
func (*WorkflowContinuedAsNew) EventType() EventType { return EventWorkflowContinuedAsNew }

// EventType implements [Attributes].
func (*ActivitySuccess) EventType() EventType { return EventActivitySuccess }

// EventType implements [Attributes].
func (*ActivityFailed) EventType() EventType { return EventActivityFailed }

// EventType implements [Attributes].
func (*ActivityCanceled) EventType() EventType { return EventActivityCanceled }

// EventType implements [Attributes].
func (*Signal) EventType() EventType { return EventSignal }
