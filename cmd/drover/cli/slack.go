package cli

import (
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/internal/slack"
)

// Widen lets the kernel wake this process less often.
func Widen(log logrus.FieldLogger) {
	if err := slack.Widen(); err != nil {
		log.WithField("err", err).Debug(
			"the process keeps its timer slack; it may take more CPU for what comes one at a time")
	}
}
