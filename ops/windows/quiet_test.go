package windows_test

import (
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/ops/windows"
	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
)

// A namespace in which nobody has asked once has no list for that, which is no news.
func TestAnIdleNodeSaysNothing(t *testing.T) {
	live(t, func(h *house) {
		log, told := test.NewNullLogger()
		w, err := windows.New(windows.Options{Conn: natsconn.Of(h.Client), Namespace: ns, Node: "a", Logger: log})
		if err != nil {
			h.t.Fatal(err)
		}
		kill := h.run(w)
		time.Sleep(time.Minute) // in the bubble
		kill()
		for _, e := range told.AllEntries() {
			if e.Level <= logrus.WarnLevel {
				h.t.Errorf("the log says %q of an idle node: %v", e.Message, e.Data)
			}
		}
	})
}
