package main

import (
	"context"
	"errors"
	"log"
	"strings"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
)

// letter is what the activity is given.
type letter struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

// welcome decides over a new user: a mail at once, another one after three days, unless the user has confirmed by then. It
// is asked whenever something has happened, and reads in the history what that is.
func welcome(ctx context.Context, t *decider.Task) ([]drover.Decision, error) {
	run, err := t.View(ctx)
	if err != nil {
		return nil, err
	}
	var user string
	if err := run.Input().Decode(&user); err != nil {
		return []drover.Decision{decider.Fail("bad-input", err.Error())}, nil
	}
	mail := func(id, text string) drover.Decision {
		return decider.Schedule(id, "mail", letter{To: user, Text: text}, decider.List("mail"),
			decider.StartToClose(time.Minute), decider.Retry(drover.RetryPolicy{MaximumAttempts: 5, NonRetryable: []string{"no-address"}}))
	}
	for _, id := range []string{"first", "reminder"} {
		if status, _, reason := run.Activity(id); status.Closed() && status != decider.ActivitySucceeded {
			return []drover.Decision{decider.Fail(id+": "+reason, nil)}, nil
		}
	}
	switch {
	case len(run.Signals("confirmed")) > 0:
		return []drover.Decision{decider.Complete("confirmed")}, nil
	case run.Counts("first").Scheduled == 0:
		return []drover.Decision{mail("first", "Welcome! Please confirm."), decider.Timer("patience", 3*24*time.Hour)}, nil
	case run.Done("reminder"):
		return []drover.Decision{decider.Complete("reminded")}, nil
	case run.Timer("patience") == decider.TimerFired && run.Counts("reminder").Scheduled == 0:
		return []drover.Decision{mail("reminder", "You have not confirmed yet.")}, nil
	}
	return nil, nil // wait for what is open
}

// mail is the activity: ordinary code, which runs at least once, on any machine.
func mail(ctx context.Context, l letter) (string, error) {
	if !strings.Contains(l.To, "@") {
		return "", activity.Fail("no-address", l.To)
	}
	if activity.Info(ctx).Attempt == 1 { // so that you see a retry
		return "", errors.New("the mail server is busy")
	}
	log.Printf("to %s: %s", l.To, l.Text)
	return "sent", nil
}
