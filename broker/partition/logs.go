package partition

import (
	"github.com/droverhq/drover/broker/partition/intake"
)

// The two logs that a partition reads, and what comes by neither.
const (
	inboxLog  = intake.Inbox
	signalLog = intake.Signals
	noLog     = intake.None
)
