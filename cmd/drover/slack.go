package main

import (
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/internal/slack"
)

// widen lets the kernel wake this process less often.
func widen(log logrus.FieldLogger) {
	if err := slack.Widen(); err != nil {
		log.WithField("err", err).Debug("the process keeps its timer slack; it may take more CPU for what comes one at a time")
	}
}
