package actor

import "github.com/droverhq/drover/schemas"

// Opened is a message of a log that is parsed, before its position is known.
type Opened struct {
	*Message
	Seq     uint64 // in its stream
	Fire    *schemas.Ring
	Request *schemas.ExecutionRequest
	Spilled int   // bytes of the body that stand in the object store
	Foreign bool  // nobody has meant it for its subject
	Err     error // why it cannot be understood, or nil
}
