package schemas

import (
	"encoding/json"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/droverhq/drover/schemas/codec"
)

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

// Decision is one thing a decider wants done. On the wire it is {"type":"ScheduleActivity","attributes":{…}} in both
// encodings.
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

// UnknownDecision holds a decision of a type that this version does not know. It is refused, by name.
type UnknownDecision struct {
	Type DecisionType
}

// DecisionType implements [DecisionAttributes].
func (u *UnknownDecision) DecisionType() DecisionType { return u.Type }

type decisionJSON struct {
	Type       DecisionType    `json:"type"`
	Attributes json.RawMessage `json:"attributes,omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (d Decision) MarshalJSON() ([]byte, error) {
	attrs, err := json.Marshal(d.Attributes)
	if err != nil {
		return nil, err
	}
	return json.Marshal(decisionJSON{Type: d.Type(), Attributes: attrs})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (d *Decision) UnmarshalJSON(b []byte) error {
	var w decisionJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return codec.Located(b, w, err)
	}
	d.Attributes = newDecision(w.Type)
	if _, unknown := d.Attributes.(*UnknownDecision); unknown || len(w.Attributes) == 0 {
		return nil
	}
	if err := json.Unmarshal(w.Attributes, d.Attributes); err != nil {
		return fmt.Errorf("decision %s: %w", w.Type, codec.Located(w.Attributes, d.Attributes, err))
	}
	return nil
}

// EncodeMsgpack implements [msgpack.CustomEncoder].
func (d Decision) EncodeMsgpack(enc *msgpack.Encoder) error {
	if err := enc.EncodeMapLen(2); err != nil {
		return err
	}
	if err := enc.EncodeString("type"); err != nil {
		return err
	}
	if err := enc.EncodeString(string(d.Type())); err != nil {
		return err
	}
	if err := enc.EncodeString("attributes"); err != nil {
		return err
	}
	return enc.Encode(d.Attributes)
}

// DecodeMsgpack implements [msgpack.CustomDecoder]. The keys may come in any order.
func (d *Decision) DecodeMsgpack(dec *msgpack.Decoder) error {
	n, err := dec.DecodeMapLen()
	if err != nil {
		return err
	}
	var typ string
	var raw msgpack.RawMessage
	for range n {
		key, err := dec.DecodeString()
		if err != nil {
			return err
		}
		switch key {
		case "type":
			typ, err = dec.DecodeString()
		case "attributes":
			raw, err = dec.DecodeRaw()
		default:
			err = dec.Skip()
		}
		if err != nil {
			return err
		}
	}
	d.Attributes = newDecision(DecisionType(typ))
	if _, unknown := d.Attributes.(*UnknownDecision); unknown || len(raw) == 0 {
		return nil
	}
	if err := codec.ByLibrary(raw, d.Attributes); err != nil {
		return fmt.Errorf("decision %s: %w", typ, err)
	}
	return nil
}

func newDecision(t DecisionType) DecisionAttributes {
	if f := decisions[t]; f != nil {
		return f()
	}
	return &UnknownDecision{Type: t}
}

// DecisionTypes returns every known type, in no order.
func DecisionTypes() []DecisionType {
	all := make([]DecisionType, 0, len(decisions))
	for t := range decisions {
		all = append(all, t)
	}
	return all
}
