package ops

import (
	"fmt"

	"github.com/droverhq/drover/schemas"
)

// Schedule starts workflows, or signals one, at times of its own. It is the value of the key
// schedule.<id> in the bucket of schedules, in a [ScheduleRecord].
type Schedule struct {
	// ID names the schedule: 1 to 256 bytes of text without control characters.
	ID string `json:"id"`
	// Times says when it is due. A schedule has either Times or Window.
	Times *ScheduleTimes `json:"times,omitempty"`
	// Window says in which part of each period it is due, once a period.
	Window *ScheduleWindow `json:"window,omitempty"`
	// Action is what is done for each slot.
	Action ScheduleAction `json:"action"`
	// Overlap says what is done with a slot while the run of an earlier one is open. Defaults to
	// skip.
	Overlap OverlapPolicy `json:"overlap,omitempty"`
	// CatchUp is how late a slot may be that was missed while nobody could fire it: at least 10 s.
	// Defaults to a year; a slot that is later is counted as missed, and so are all but the latest
	// 1,000.
	CatchUp schemas.Duration `json:"catchUp,omitempty"`
	// PauseOnFailure pauses the schedule when one of its runs fails or times out.
	PauseOnFailure bool `json:"pauseOnFailure,omitempty"`
	// Remaining is how many slots are still to be done; after the last one the schedule rests. Left
	// out means no limit.
	Remaining *int64 `json:"remaining,omitempty"`
	// Paused: slots are counted as skipped until it is resumed, or until PausedUntil.
	Paused      bool              `json:"paused,omitempty"`
	PausedUntil schemas.Timestamp `json:"pausedUntil,omitempty"`
	// Note says why it is paused, or what it is for; at most 1,024 bytes.
	Note string `json:"note,omitempty"`
}

// ScheduleAction is one of Start and Signal. A Start with a signal in it is a signal-with-start.
type ScheduleAction struct {
	// Start is the start of each run. Without a workflow id that is <schedule>/<slot>. In its
	// input, and in that of a signal, ${slot}, ${last.slot} and ${last.result} stand for the slot,
	// the last slot that was done, and the result of the last run that completed. Run and requestId
	// are the schedule's own and may not be given.
	Start *schemas.StartRequest `json:"start,omitempty"`
	// Signal is a signal to a workflow that is open.
	Signal *schemas.SignalRequest `json:"signal,omitempty"`
}

// Signals tells whether the action is a signal, with a start or without: it is done when the signal
// is stored.
func (a *ScheduleAction) Signals() bool {
	return a.Signal != nil || a.Start != nil && a.Start.Signal != nil
}

// OverlapPolicy says what a schedule does with a slot while the run of an earlier one is open.
type OverlapPolicy string

// The overlap policies.
const (
	OverlapSkip      OverlapPolicy = "skip"      // the slot is left out
	OverlapBufferOne OverlapPolicy = "bufferOne" // the slot waits, if none waits yet
	OverlapBufferAll OverlapPolicy = "bufferAll" // the slot waits, as do up to 999 others
	// the open run is asked to end, and the slot waits for that
	OverlapCancelOther    OverlapPolicy = "cancelOther"
	OverlapTerminateOther OverlapPolicy = "terminateOther" // the open run is ended at once
	OverlapAllow          OverlapPolicy = "allow"          // both are open
)

// Validate refuses what is no overlap policy; empty is the default. The error names the field.
func (p OverlapPolicy) Validate(field string) error {
	switch p {
	case "",
		OverlapSkip,
		OverlapBufferOne,
		OverlapBufferAll,
		OverlapCancelOther,
		OverlapTerminateOther,
		OverlapAllow:
		return nil
	}
	return fmt.Errorf("%s is %q; want %s, %s, %s, %s, %s or %s", field, string(p), OverlapSkip,
		OverlapBufferOne, OverlapBufferAll, OverlapCancelOther, OverlapTerminateOther, OverlapAllow)
}

// ScheduleRecord is a schedule as it is stored.
type ScheduleRecord struct {
	V        int      `json:"v,omitempty"`
	Schedule Schedule `json:"schedule"`
	// Incarnation tells this schedule from a deleted one of the same id. Run ids are computed from
	// it.
	Incarnation string            `json:"incarnation"`
	CreatedAt   schemas.Timestamp `json:"createdAt"`
	UpdatedAt   schemas.Timestamp `json:"updatedAt,omitempty"`
	// Identity is who created it, or changed it last.
	Identity string `json:"identity,omitempty"`
	// Since is from when on slots count: the creation, or the last change of its times.
	Since schemas.Timestamp `json:"since"`
	// Updates is how often it was updated. The state says by it which update it has taken up.
	Updates int64 `json:"updates,omitempty"`
}

// SlotOutcome is what became of a slot.
type SlotOutcome string

// The outcomes of slots.
const (
	SlotStarting SlotOutcome = "starting" // it is being started
	SlotRunning  SlotOutcome = "running"  // its run is open
	SlotBuffered SlotOutcome = "buffered" // it waits for the end of an earlier run
	SlotDone     SlotOutcome = "done"     // its run completed, or its signal was stored
	SlotFailed   SlotOutcome = "failed"   // its run ended in another way
	SlotSkipped  SlotOutcome = "skipped"  // an earlier run was open, or the schedule was paused
	SlotMissed   SlotOutcome = "missed"   // nobody could fire it in time
	SlotOverrun  SlotOutcome = "overrun"  // too many waited
	SlotRefused  SlotOutcome = "refused"  // its start or signal was refused
)

// ScheduleSlot is a slot and what became of it.
type ScheduleSlot struct {
	// Slot is when it was due, without jitter.
	Slot schemas.Timestamp `json:"slot"`
	// At is when that was done; of a slot that is being started, when its start was last decided
	// upon.
	At         schemas.Timestamp `json:"at,omitempty"`
	Outcome    SlotOutcome       `json:"outcome"`
	WorkflowID string            `json:"workflowId,omitempty"`
	Run        string            `json:"run,omitempty"`
	// Status is how the run ended.
	Status schemas.Status `json:"status,omitempty"`
	// Reason says why it was skipped, missed or refused, or why its run failed.
	Reason string `json:"reason,omitempty"`
	// Manual: it was triggered or is of a backfill. Such a slot has a nonce of its own.
	Manual string `json:"manual,omitempty"`
	// Overlap is the policy of a manual slot.
	Overlap OverlapPolicy `json:"overlap,omitempty"`
}

// ScheduleCounts counts slots since the creation.
type ScheduleCounts struct {
	Started int64 `json:"started,omitempty"`
	Done    int64 `json:"done,omitempty"`
	Failed  int64 `json:"failed,omitempty"`
	Skipped int64 `json:"skipped,omitempty"`
	Missed  int64 `json:"missed,omitempty"`
	Overrun int64 `json:"overrun,omitempty"`
	Refused int64 `json:"refused,omitempty"`
}

// ScheduleState is what a schedule has done: the value of the key schedule.<id>.state, written by
// compare-and-set.
type ScheduleState struct {
	V           int    `json:"v,omitempty"`
	Incarnation string `json:"incarnation"`
	// Updates is that of the record when its limit was last taken up.
	Updates int64 `json:"updates,omitempty"`
	// Remaining is what is left of the limit.
	Remaining *int64 `json:"remaining,omitempty"`
	// LastSlot is the last slot that was taken up: started, put to wait, or counted. So were all
	// before it.
	LastSlot schemas.Timestamp `json:"lastSlot,omitempty"`
	// Starting is the slot that is being started. It is written before the start, and the start is
	// repeated after a crash.
	Starting *ScheduleSlot `json:"starting,omitempty"`
	// Running are the slots whose runs are open, Buffered those that wait, in their order.
	Running  []ScheduleSlot `json:"running,omitempty"`
	Buffered []ScheduleSlot `json:"buffered,omitempty"`
	// Recent are the last 20 slots that were settled, the latest first. One that stands for several
	// says so in its reason.
	Recent []ScheduleSlot `json:"recent,omitempty"`
	Counts ScheduleCounts `json:"counts"`
	// LastDone is the last slot whose run completed, and LastResult its result if that has at most
	// 64 KiB.
	LastDone   schemas.Timestamp `json:"lastDone,omitempty"`
	LastResult schemas.Payload   `json:"lastResult,omitempty"`
}

// ScheduleCreateRequest makes a schedule. A repeat with the same contents is answered like the
// first one.
type ScheduleCreateRequest struct {
	V         int      `json:"v,omitempty"`
	Schedule  Schedule `json:"schedule"`
	RequestID string   `json:"requestId,omitempty"`
	Identity  string   `json:"identity,omitempty"`
}

// ScheduleUpdateRequest changes a schedule. Its counters stay, and slots are taken from now on.
type ScheduleUpdateRequest struct {
	V        int      `json:"v,omitempty"`
	Schedule Schedule `json:"schedule"`
	// Revision is that of the schedule which was read before; a schedule that was changed since
	// then is not changed, so that two who change it do not undo each other's work. 0 changes it in
	// any case.
	Revision uint64 `json:"revision,omitempty"`
	Identity string `json:"identity,omitempty"`
}

// ScheduleRequest names a schedule: scheduleShow, schedulePause, scheduleResume and scheduleDelete.
type ScheduleRequest struct {
	V  int    `json:"v,omitempty"`
	ID string `json:"id"`
	// Until ends a pause.
	Until schemas.Timestamp `json:"until,omitempty"`
	// Next is how many of the next times scheduleShow tells. Defaults to 10, at most 1,000.
	Next     int    `json:"next,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Identity string `json:"identity,omitempty"`
}

// ScheduleTriggerRequest does the action of a schedule now. It uses up one of what remains.
type ScheduleTriggerRequest struct {
	V  int    `json:"v,omitempty"`
	ID string `json:"id"`
	// Overlap is the policy of this slot. Defaults to that of the schedule.
	Overlap   OverlapPolicy `json:"overlap,omitempty"`
	RequestID string        `json:"requestId,omitempty"`
	Reason    string        `json:"reason,omitempty"`
	Identity  string        `json:"identity,omitempty"`
}

// ScheduleBackfillRequest does the slots that a schedule would have had from From on and before
// Until, both in the past.
type ScheduleBackfillRequest struct {
	V     int               `json:"v,omitempty"`
	ID    string            `json:"id"`
	From  schemas.Timestamp `json:"from"`
	Until schemas.Timestamp `json:"until"`
	// Overlap is the policy of these slots. Defaults to bufferAll.
	Overlap   OverlapPolicy `json:"overlap,omitempty"`
	RequestID string        `json:"requestId,omitempty"`
	Reason    string        `json:"reason,omitempty"`
	Identity  string        `json:"identity,omitempty"`
}

// ScheduleResponse is a schedule as it stands after the request; after scheduleDelete, as it was
// last.
type ScheduleResponse struct {
	V      int             `json:"v,omitempty"`
	Record *ScheduleRecord `json:"record,omitempty"`
	// Revision is what an update names.
	Revision uint64 `json:"revision,omitempty"`
	// State is what the schedule has done.
	State *ScheduleState `json:"state,omitempty"`
	// NextTimes are the next times at which it is due.
	NextTimes []schemas.Timestamp `json:"nextTimes,omitempty"`
	// Warnings tell what may not be meant, such as a day of the month and a day of the week in one
	// cron expression.
	Warnings []string `json:"warnings,omitempty"`
	// Slots is how many slots a backfill does.
	Slots int `json:"slots,omitempty"`
	// Changed is false when the request found nothing to do, because it was carried out before.
	Changed bool `json:"changed,omitempty"`
	// TimeZones is the version of the time zone data that the times are computed with.
	TimeZones string         `json:"timeZones,omitempty"`
	Error     *schemas.Error `json:"error,omitempty"`
}

// ScheduleListRequest lists schedules by their ids. Prefix is how the id begins.
type ScheduleListRequest struct {
	V int `json:"v,omitempty"`
	// Prefix is how the id of the schedule begins.
	Prefix string `json:"prefix,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// ScheduleLine is a line of a list of schedules.
type ScheduleLine struct {
	Schedule Schedule          `json:"schedule"`
	Next     schemas.Timestamp `json:"next,omitempty"`
	// Last is the latest slot.
	Last    *ScheduleSlot  `json:"last,omitempty"`
	Running int            `json:"running,omitempty"`
	Counts  ScheduleCounts `json:"counts"`
}

// ScheduleListResponse is a page of schedules in the order of their ids; Cursor continues it and is
// empty at its end.
type ScheduleListResponse struct {
	V         int            `json:"v,omitempty"`
	Schedules []ScheduleLine `json:"schedules"`
	Cursor    string         `json:"cursor,omitempty"`
	Error     *schemas.Error `json:"error,omitempty"`
}
