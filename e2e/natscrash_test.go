package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
)

// The brokers live on while their NATS server is killed with -9 and comes back on the same store: they notice that it is
// another one and repeat what is open (P-8), so that whatever waits for a timer, a worker or a signal ends; also if the
// server has lost the tail of its tasks and alarms, as after a power cut.
func TestNATSDiesUnderBrokers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		lost []string // streams that the server comes back without
	}{
		{"with all that it had", nil},
		{"without its tasks and alarms", []string{
			namespace.StreamTasks(playList), namespace.StreamAlarms(0), namespace.StreamAlarms(1), namespace.StreamAlarms(2), namespace.StreamAlarms(3),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			nats := w.bareNATS()
			brokers := []*process{w.beside("one", "broker,timers,ops", "--claim-ttl", "2s"), w.beside("two", "broker,timers", "--claim-ttl", "2s")}
			deciders := w.client.Deciders(nil)
			deciders.Register(playType, decider.Func(decidePlay))
			defer w.background(deciders.Run)()

			var runs []*drover.Run
			for i := range 6 {
				for name, a := range map[string]act{
					"sleeps": {Do: doSleep, Seconds: 4}, "works": {Do: doWork, Name: "echo"}, "hears": {Do: doHear, Name: "go"},
				} {
					runs = append(runs, w.start(playType, fmt.Sprintf("%s-%d", name, i), script{Acts: []act{a, {Do: doWork, Name: "echo"}}}, startOptions{}))
				}
			}
			for _, run := range runs {
				w.has(run, schemas.EventDeciderCompleted)
			}
			poll.Until(t, patience, "each alarm is stored", func() bool { return w.alarms() >= uint64(len(runs)) })

			nats.Kill()
			for _, stream := range tt.lost {
				if err := os.RemoveAll(filepath.Join(w.dir, "store", "jetstream", "$G", "streams", stream, "msgs")); err != nil {
					t.Fatal(err)
				}
			}
			w.bareNATS()
			poll.Until(t, patience, "the brokers have seen that the server is another one", func() bool {
				said := 0
				for _, b := range brokers {
					log, err := os.ReadFile(b.Log)
					if err != nil {
						t.Fatal(err)
					}
					said += bytes.Count(log, []byte("repeating the effects of every open run"))
				}
				return said > 0
			})
			activities := w.client.Activities(&activity.Options{Lists: []string{playList}})
			props(activities)
			defer w.background(activities.Run)()
			for _, run := range runs {
				want := `"slept;echo ok;"`
				switch run.ID[0] {
				case 'w':
					want = `"echo ok;echo ok;"`
				case 'h':
					want = `"heard go;echo ok;"`
					if err := run.Signal(t.Context(), "go", nil); err != nil {
						t.Fatal(err)
					}
				}
				w.completes(run, want)
			}
			for _, b := range brokers {
				b.Alive()
			}
			w.verify()
			w.idle()
		})
	}
}

// alarms counts those that were ever stored.
func (w *world) alarms() (n uint64) {
	w.t.Helper()
	for partition := range 4 {
		_, last, err := natsconn.Of(w.client).StreamState(w.t.Context(), namespace.StreamAlarms(partition))
		if err != nil {
			w.t.Fatal(err)
		}
		n += last
	}
	return n
}
