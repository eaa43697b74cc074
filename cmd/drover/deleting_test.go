package main

import (
	"context"
	"errors"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/server"
)

// onLine calls it for each line of a log.
type onLine func(*logrus.Entry)

func (onLine) Levels() []logrus.Level        { return logrus.AllLevels }
func (fn onLine) Fire(e *logrus.Entry) error { fn(e); return nil }

// The server ends in the middle of the deletion of its home. It is started again, and nobody else could let it start.
func TestServeAfterADeletionThatIsCutShort(t *testing.T) {
	o := embedded.Options{StoreDir: t.TempDir(), Profile: embedded.ProfileDev, DontListen: true}
	former := embeddedtest.Serve(t, o)
	conn := embeddedtest.Connect(t, former)
	if _, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	ctx, cut := context.WithCancel(t.Context())
	defer cut()
	log, _ := logtest.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	log.AddHook(onLine(func(e *logrus.Entry) {
		if e.Message == "stream deleted" {
			cut()
		}
	}))
	if err := topology.Delete(ctx, conn, "default", topology.DeleteOptions{Logger: log}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want it cut short", err)
	}
	conn.Close()
	former.Shutdown()

	o.DontListen, o.Port = false, -1
	s := serving(t, server.Options{Embedded: o, Partitions: 3})
	if s.Partitions != 3 {
		t.Fatalf("got %+v, want a home that is made anew", s.Info)
	}
	command("", "start", "greet", "--nats", s.URL).done(t)
	s.end(t)
}
