package main

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider/workflow"

	"github.com/droverhq/drover/examples/signup/contracts"
)

// signup is the workflow. It asks a new user to confirm, and once more after three days. It must do
// the same each time, so it does everything through ctx and package workflow.
func signup(ctx workflow.Context, address string) (string, error) {
	letter := contracts.Letter{To: address, Text: "Welcome! Please confirm."}
	if _, err := workflow.Call(ctx, contracts.SendMail, letter); err != nil {
		return "", err
	}
	patience, stop := workflow.WithTimeout(ctx, 3*24*time.Hour)
	defer stop()
	_, err := workflow.Signals(ctx, contracts.Confirmed).Receive(patience)
	if !errors.Is(err, workflow.ErrTimeout) {
		return "confirmed", err
	}
	letter.Text = "You have not confirmed yet."
	_, err = workflow.Call(ctx, contracts.SendMail, letter)
	return "reminded", err
}

// sendMail is the activity: ordinary code. When it fails it is tried again, here or elsewhere.
func sendMail(ctx context.Context, l contracts.Letter) (string, error) {
	if activity.Info(ctx).Attempt == 1 { // so that you see it
		return "", errors.New("the mail server is busy")
	}
	log.Printf("mail to %s: %s", l.To, l.Text)
	return "sent", nil
}
