package logx_test

import (
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/internal/logx"
)

func TestOr(t *testing.T) {
	mine := logrus.New()
	if got := logx.Or(mine); got != mine {
		t.Errorf("got %v, want the logger that was given", got)
	}
	if got, ok := logx.Or(nil).(*logrus.Logger); !ok || got.IsLevelEnabled(logrus.FatalLevel) {
		t.Errorf("got %v, want a logger that formats nothing", got)
	}
}
