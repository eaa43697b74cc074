package partition

import (
	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/execution"
)

// DeadReasons are those of the letters that programs of this version write.
var DeadReasons = []string{
	deadUnknown, dead.ReasonUndecodable, dead.ReasonLostRecords, dead.ReasonDamaged, deadForeign,
	deadTooLarge, dead.ReasonUndecodableTask, dead.ReasonUndecodableAlarm,
	execution.DeadClosedActivity, execution.DeadStaleToken, execution.DeadClosedWorkflow,
	execution.DeadLateDecision, execution.DeadInvalid, execution.DeadForeignList,
}
