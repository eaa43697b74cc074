package signals_test

import (
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"

	"github.com/droverhq/drover/internal/virtual"
)

const ns = subject.Namespace("default")

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

func ensure(t *testing.T, conn *natsconn.Conn) {
	t.Helper()
	if _, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 4, Memory: true}); err != nil {
		t.Error(err)
	}
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, fn func(t *testing.T, conn *natsconn.Conn)) {
	t.Helper()
	virtually(t, func(t *testing.T) { fn(t, embeddedtest.Dial(t)) })
}

func virtually(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	virtual.Run(t, fn)
}
