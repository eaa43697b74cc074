package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// The steps of an order. The decider writes a marker for each one it has taken: the markers are the index of a history, by
// which people find the event they look for. See index.
const (
	stepReserved = "reserved"
	stepApproved = "approved"
	stepDue      = "window-over" // from here on it is too late to cancel
	stepPaid     = "paid"
	stepShipped  = "shipped"
	stepCanceled = "canceled"
	stepTooLate  = "cancel-too-late"
	stepTrouble  = "trouble"
	stepReleased = "released"
	stepRefunded = "refunded"
	stepAlerted  = "alerted"
)

// steps says when a step is reached, and what there is to note. A step once reached stays so, whatever comes later: which of
// a cancel and the end of the window counts is a matter of which event came first. Of two steps that one event completes, the
// first one here wins.
var steps = []struct {
	name    string
	reached func(s *story) (bool, string)
}{
	{stepReserved, func(s *story) (bool, string) { return s.succeeded(actReserve), "" }},
	{stepApproved, func(s *story) (bool, string) {
		a, given := s.approval()
		return given && a.OK && !s.is(stepTrouble), "by " + a.By
	}},
	{stepTrouble, func(s *story) (bool, string) { why := s.goesWrong(); return why != "" && !s.is(stepCanceled), why }},
	{stepDue, func(s *story) (bool, string) {
		return s.Timer(timerWindow) == decider.TimerFired && !s.is(stepCanceled), ""
	}},
	{stepCanceled, func(s *story) (bool, string) {
		how := s.cancelWanted()
		return how != "" && !s.is(stepDue) && !s.is(stepTrouble), how
	}},
	{stepTooLate, func(s *story) (bool, string) { how := s.cancelWanted(); return how != "" && s.is(stepDue), how }},
	{stepPaid, func(s *story) (bool, string) {
		return s.payment.Status == decider.ChildSucceeded, "receipt " + decode[receipt](s.payment.Result).Number
	}},
	{stepShipped, func(s *story) (bool, string) { return s.succeeded(actShip), "" }},
	{stepReleased, func(s *story) (bool, string) { return s.succeeded(actRelease), "" }},
	{stepRefunded, func(s *story) (bool, string) {
		_, result, _ := s.Activity(actRefund)
		return s.succeeded(actRefund), "receipt " + decode[receipt](result).Number
	}},
	{stepAlerted, func(s *story) (bool, string) { return s.succeeded(actAlert), "" }},
}

// story is what has happened to an order, as far as its decider may know.
type story struct {
	*decider.View
	id      string
	order   order
	payment decider.Child
	done    map[string]entry // the steps that are reached
}

// readStory folds the history, and looks after each event which steps it has completed.
func readStory(ctx context.Context, t *decider.Task) (*story, error) {
	s := &story{View: decider.NewView(), id: t.Execution().WorkflowID, done: map[string]entry{}}
	for e, err := range t.History(ctx) {
		if err != nil {
			return nil, err
		}
		s.Add(e)
		s.payment = s.Child(paymentOf(s.id))
		if e.ID == 1 {
			s.order = decode[order](s.Input())
		}
		for _, step := range steps {
			if s.is(step.name) {
				continue
			}
			if reached, note := step.reached(s); reached {
				s.done[step.name] = entry{Event: e.ID, Note: note}
			}
		}
	}
	return s, nil
}

// index writes a marker for each step that has none yet. Asked again after a decision that was lost, it writes the same.
func (s *story) index() []schemas.Decision {
	var decisions []schemas.Decision
	for _, step := range steps {
		if e, reached := s.done[step.name]; reached && len(s.Markers(step.name)) == 0 {
			decisions = append(decisions, decider.Marker(step.name, e))
		}
	}
	return decisions
}

// is tells whether a step is reached.
func (s *story) is(step string) bool { return s.done[step].Event != 0 }

// asked tells whether an activity was scheduled, however it ended.
func (s *story) asked(act string) bool { status, _, _ := s.Activity(act); return status != 0 }

func (s *story) succeeded(act string) bool {
	status, _, _ := s.Activity(act)
	return status == decider.ActivitySucceeded
}

// approval is the first answer to the question whether a large order is to be delivered. One that does not say whose it is
// is none.
func (s *story) approval() (a approval, given bool) {
	if s.order.Amount <= s.order.Limit {
		return approval{}, false
	}
	for _, input := range s.Signals(signalApprove) {
		if a = decode[approval](input); a.By != "" {
			return a, true
		}
	}
	return approval{}, false
}

// cancelWanted says how the order was canceled, "" if it was not.
func (s *story) cancelWanted() string {
	switch {
	case len(s.Signals(signalCancel)) > 0:
		return "by the customer"
	case s.CancelRequested():
		return "by a cancel request"
	}
	return ""
}

// trouble is the reason for which the order cannot be delivered, "" if there is none.
func (s *story) trouble() string { return s.done[stepTrouble].Note }

// goesWrong looks for it.
func (s *story) goesWrong() string {
	a, given := s.approval()
	switch {
	case s.failure(actReserve) != "":
		return s.failure(actReserve)
	case given && !a.OK && !s.is(stepApproved):
		return reasonRejected
	case s.Timer(timerApproval) == decider.TimerFired && !s.is(stepApproved):
		return reasonNoApproval
	case s.Timer(timerApproval) == decider.TimerRefused, s.Timer(timerWindow) == decider.TimerRefused:
		return "the order's times make no sense"
	case s.payment.Status == decider.ChildFailed && slices.Contains(notCharged, s.payment.Reason):
		return s.payment.Reason
	case s.payment.Status.Closed() && s.payment.Status != decider.ChildSucceeded:
		return reasonUnclear
	}
	return s.failure(actShip)
}

// failure says why an activity has failed, "" if it has not.
func (s *story) failure(act string) string {
	switch status, _, reason := s.Activity(act); {
	case !status.Closed() || status == decider.ActivitySucceeded:
		return ""
	case status == decider.ActivityFailed && reason != "":
		return reason
	default:
		return strings.TrimSpace(fmt.Sprintf("%s %v %s", act, status, reason))
	}
}

// harmless is what happens in every shop.
var harmless = []string{"", reasonOutOfStock, reasonRejected, reasonNoApproval, reasonDeclined}

// alarming says what a human must know, "" if nothing.
func (s *story) alarming() string {
	var all []string
	if why := s.trouble(); !slices.Contains(harmless, why) {
		all = append(all, "it cannot be delivered: "+why)
	}
	for _, act := range []string{actRelease, actRefund} {
		if why := s.failure(act); why != "" {
			all = append(all, act+" failed: "+why)
		}
	}
	return strings.Join(all, "; ")
}
