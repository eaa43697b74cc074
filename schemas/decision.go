package schemas

import "github.com/vmihailenco/msgpack/v5"

// DecisionType names what a decider wants done.
type DecisionType string

// The decisions.
const (
	DecideScheduleActivity      DecisionType = "ScheduleActivity"
	DecideRequestCancelActivity DecisionType = "RequestCancelActivity"
	DecideScheduleTimer         DecisionType = "ScheduleTimer"
	DecideCancelTimer           DecisionType = "CancelTimer"
	DecideRecordMarker          DecisionType = "RecordMarker"
	DecideStartChild            DecisionType = "StartChild"
	DecideSignalExternal        DecisionType = "SignalExternal"
	DecideCancelExternal        DecisionType = "CancelExternal"
	DecideAcquireLock           DecisionType = "AcquireLock"
	DecideReleaseLock           DecisionType = "ReleaseLock"
	DecideGetState              DecisionType = "GetState"
	DecideSetState              DecisionType = "SetState"
	DecideClearState            DecisionType = "ClearState"
	DecideSetReplayPoint        DecisionType = "SetReplayPoint"
	DecideResetReplayPoints     DecisionType = "ResetReplayPoints"
	DecideSetRetention          DecisionType = "SetRetention"
	DecideSetAttributes         DecisionType = "SetAttributes"
	DecideCompleteWorkflow      DecisionType = "CompleteWorkflow"
	DecideFailWorkflow          DecisionType = "FailWorkflow"
	DecideCancelWorkflow        DecisionType = "CancelWorkflow"
	DecideContinueAsNew         DecisionType = "ContinueAsNew"
)

// DecisionAttributes are what a decision says; the type of the value is the type of the decision.
type DecisionAttributes interface{ DecisionType() DecisionType }

// Decision is one thing a decider wants done. On the wire it is
// {"type":"ScheduleActivity","attributes":{…}} in both encodings.
type Decision struct {
	Attributes DecisionAttributes
}

// Decide wraps attributes as a decision.
func Decide(a DecisionAttributes) Decision { return Decision{Attributes: a} }

// Type returns the decision's type.
func (d Decision) Type() DecisionType {
	if d.Attributes == nil {
		return ""
	}
	return d.Attributes.DecisionType()
}

// Closes tells whether the decision would end the run.
func (d Decision) Closes() bool {
	switch d.Type() {
	case DecideCompleteWorkflow, DecideFailWorkflow, DecideCancelWorkflow, DecideContinueAsNew:
		return true
	}
	return false
}

// UnknownDecision holds a decision of a type that this version does not know. It is refused, by
// name.
type UnknownDecision struct {
	Type DecisionType
}

// DecisionType implements [DecisionAttributes].
func (u *UnknownDecision) DecisionType() DecisionType { return u.Type }

// MarshalJSON implements [json.Marshaler].
func (d Decision) MarshalJSON() ([]byte, error) { return vocabulary.DecisionJSON(codedDecision(&d)) }

// UnmarshalJSON implements [json.Unmarshaler].
func (d *Decision) UnmarshalJSON(b []byte) error {
	coded, err := vocabulary.ReadDecisionJSON(b)
	if err == nil {
		*d = decisionOf(coded)
	}
	return err
}

// EncodeMsgpack implements [msgpack.CustomEncoder].
func (d Decision) EncodeMsgpack(enc *msgpack.Encoder) error {
	return vocabulary.EncodeDecision(enc, codedDecision(&d))
}

// DecodeMsgpack implements [msgpack.CustomDecoder]. The keys may come in any order.
func (d *Decision) DecodeMsgpack(dec *msgpack.Decoder) error {
	coded, err := vocabulary.DecodeDecision(dec)
	if err == nil {
		*d = decisionOf(coded)
	}
	return err
}

// DecisionTypes returns every known type, in no order.
func DecisionTypes() []DecisionType {
	all := make([]DecisionType, 0, len(decisions))
	for t := range decisions {
		all = append(all, t)
	}
	return all
}
