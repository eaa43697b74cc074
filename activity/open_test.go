package activity_test

import (
	"context"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/drovertest"
)

// A worker of a namespace that nobody serves, such as one that is misspelled, says so once, and not while a server begins.
func TestNobodyOpensTheList(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		log, kept := logtest.NewNullLogger()
		c, err := drover.Connect(t.Context(), &drover.Options{Conn: e.Client.Conn(), Namespace: "nobody", Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		w := c.Activities(&activity.Options{Lists: []string{"words"}})
		activity.Register(w, "t", func(context.Context, string) (string, error) { return "", nil })
		e.Go(w)
		warnings := func() (n int) {
			for _, entry := range kept.AllEntries() {
				if entry.Level == logrus.WarnLevel {
					n++
				}
			}
			return n
		}
		time.Sleep(2 * time.Second)
		if n := warnings(); n != 0 {
			t.Errorf("got %d warnings behind two seconds, want none", n)
		}
		time.Sleep(time.Minute)
		if n := warnings(); n != 1 {
			t.Errorf("got %d warnings behind a minute, want one: %v", n, kept.AllEntries())
		}
	})
}
