package types

import (
	"testing"

	"github.com/droverhq/drover/broker/embedded"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}
