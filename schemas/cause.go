package schemas

// Cause says why the service did what it did: SWF's words where SWF has one.
type Cause string

// The causes. Append-only.
const (
	CauseUnhandledDecision   Cause = "UNHANDLED_DECISION"
	CauseNotPermitted        Cause = "OPERATION_NOT_PERMITTED"
	CauseActivityIDInUse     Cause = "ACTIVITY_ID_ALREADY_IN_USE"
	CauseActivityIDUnknown   Cause = "ACTIVITY_ID_UNKNOWN"
	CauseOpenActivitiesLimit Cause = "OPEN_ACTIVITIES_LIMIT_EXCEEDED"
	CauseListUndefined       Cause = "DEFAULT_TASK_LIST_UNDEFINED"
	CauseTimerIDInUse        Cause = "TIMER_ID_ALREADY_IN_USE"
	CauseTimerIDUnknown      Cause = "TIMER_ID_UNKNOWN"
	CauseOpenTimersLimit     Cause = "OPEN_TIMERS_LIMIT_EXCEEDED"
	CauseChildPolicyApplied  Cause = "CHILD_POLICY_APPLIED"
	CauseEventLimitExceeded  Cause = "EVENT_LIMIT_EXCEEDED"
	CauseOperatorInitiated   Cause = "OPERATOR_INITIATED"

	CauseWorkflowRunning        Cause = "WORKFLOW_ALREADY_RUNNING"
	CauseOpenChildrenLimit      Cause = "OPEN_CHILDREN_LIMIT_EXCEEDED"
	CauseUnknownExecution       Cause = "UNKNOWN_EXTERNAL_WORKFLOW_EXECUTION"
	CauseWorkflowTypeUnknown    Cause = "WORKFLOW_TYPE_DOES_NOT_EXIST"
	CauseWorkflowTypeDeprecated Cause = "WORKFLOW_TYPE_DEPRECATED"
	CauseActivityTypeUnknown    Cause = "ACTIVITY_TYPE_DOES_NOT_EXIST"
	CauseActivityTypeDeprecated Cause = "ACTIVITY_TYPE_DEPRECATED"

	// CauseOpenExternalsLimit: too many signals and cancels to other workflows are unanswered.
	CauseOpenExternalsLimit Cause = "OPEN_EXTERNALS_LIMIT_EXCEEDED"
	// CauseChildDepth: the run has too many ancestors to have a child.
	CauseChildDepth Cause = "CHILD_DEPTH_LIMIT_EXCEEDED"
	// CauseReplaced: a start with the conflict policy TERMINATE_EXISTING took the workflow id.
	CauseReplaced Cause = "TERMINATED_BY_START"

	// CauseOpenLocksLimit: the run holds or waits for too many locks.
	CauseOpenLocksLimit Cause = "OPEN_LOCKS_LIMIT_EXCEEDED"
	// CauseLockRequested: the run waits for the lock already.
	CauseLockRequested Cause = "LOCK_ALREADY_REQUESTED"
	// CauseLockLimit: the lock is held or waited for with another limit.
	CauseLockLimit Cause = "LOCK_LIMIT_DIFFERS"
	// CauseLockQueue: too many runs wait for the lock.
	CauseLockQueue Cause = "LOCK_QUEUE_FULL"
	// CauseLeaseExpired: the lease of the lock ran out, and another run wanted it.
	CauseLeaseExpired Cause = "LEASE_EXPIRED"
	// CauseLockLost: the key of the lock was changed by hand, or lost, and another run has the
	// lock.
	CauseLockLost Cause = "LOCK_LOST"

	// CauseClearedByWorkflow: another workflow has cleared the key lock-NAME of the lock.
	CauseClearedByWorkflow Cause = "CLEARED_BY_WORKFLOW"

	// CauseRequirement: the state key does not have the value that the change requires.
	CauseRequirement Cause = "REQUIREMENT_NOT_MET"
	// CauseOpenStatesLimit: too many requests of the run for state keys are unanswered.
	CauseOpenStatesLimit Cause = "OPEN_STATE_REQUESTS_LIMIT_EXCEEDED"

	// CauseInvalidAttributes: the decision names something that breaks the rules of ids, names or
	// limits.
	CauseInvalidAttributes Cause = "INVALID_ATTRIBUTES"
	// CauseDeciderError: the decider reported an error.
	CauseDeciderError Cause = "DECIDER_ERROR"
	// CauseDeciderPanic: the decider panicked; the details hold the stack.
	CauseDeciderPanic Cause = "DECIDER_PANIC"
	// CauseInvalidDecision: the reply as a whole cannot be applied; nothing of it was.
	CauseInvalidDecision Cause = "INVALID_DECISION"
	// CauseDecisionTooLarge: the reply does not fit a message of the server; nothing of it was
	// applied.
	CauseDecisionTooLarge Cause = "DECISION_TOO_LARGE"
	// CauseNonDeterministic: the code of the decider does not do what the history says it did.
	CauseNonDeterministic Cause = "NON_DETERMINISTIC"
	// CauseDeciderAttempts: the decider failed or timed out too often in a row; the run is parked.
	CauseDeciderAttempts Cause = "DECIDER_ATTEMPTS_EXCEEDED"
)

// ReasonInterrupted is the failure reason of an activity whose worker was lost: of one that must
// not run twice at once, of any other when that has happened too often in a row.
const ReasonInterrupted = "interrupted"

// DefaultMaximumInterruptions is how often in a row the worker of an activity may be lost whose
// decision says nothing about it.
const DefaultMaximumInterruptions = 10

// UnlimitedInterruptions as MaximumInterruptions lets an activity begin again however often its
// worker is lost.
const UnlimitedInterruptions = -1

// ReasonFailed is the failure reason of an activity that failed without one of its own.
const ReasonFailed = "failed"
