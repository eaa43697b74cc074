package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/schemas"
)

// ask publishes and names a subject for the answer, as anybody may who has the right to publish.
func (f *fleet) ask(subj, reply, body string) {
	f.t.Helper()
	if err := f.nc.PublishMsg(&nats.Msg{Subject: subj, Reply: reply, Data: []byte(body)}); err != nil {
		f.t.Fatal(err)
	}
	time.Sleep(time.Second)
}

// The acknowledgement of a signal, and the answer of a broker, go to the subject that the sender names. Whatever it names, the
// sender gains nothing by it: the run goes on, and loads again.
func TestAnswersAreNoMessages(t *testing.T) {
	for _, tc := range []struct {
		name, reply string
		foreign     int // dead letters
	}{
		{"terminate", "drover.default.in.0.o.terminate", 1},
		{"pause", "drover.default.in.0.o.pause", 1},
		{"cancel", "drover.default.in.0.o.cancel", 1},
		{"start", "drover.default.in.0.o2.start", 1},
		{"alarm", "drover.default.in.0.o.alarm", 1},
		{"another signal", "drover.default.signal.o.reject", 1},
		{"the history of the run", "drover.default.history.0.o.r1", 0},
		{"the history of another run", "drover.default.history.0.o.r2", 0},
		{"the history of nobody", "drover.default.history.0.nobody.r2", 0},
		{"the fence", "drover.default.history.0.fence", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				first := f.node("a", nil)
				f.decider("order", one(""))
				f.start(startO)
				f.ask("drover.default.signal.o.approve", tc.reply, `"Ada"`)
				if got := f.dead(); len(got) != tc.foreign || tc.foreign > 0 && got[0] != "stray" {
					t.Errorf("got dead letters %v, want %d strays", got, tc.foreign)
				}
				for _, verb := range []string{"describe", "history", "signal", "pause"} { // answered by brokers: not at all
					body := `{"workflowId":"o","run":"r0"}`
					switch verb {
					case "signal":
						body = `{"workflowId":"o","name":"approve"}`
					case "history":
						body = `{"workflowId":"o"}`
					}
					before := f.streamEnds()
					f.ask(ns.API(verb), tc.reply, body)
					if after := f.streamEnds(); verb != "signal" && after != before {
						t.Errorf("the answer to %s was stored: the streams ended at %s, and now at %s", verb, before, after)
					}
				}
				first.stop() // the next owner loads what there is
				f.node("b", nil)
				f.pull().success()
				f.completes("o")
				types := strings.Join(f.types("o"), " ")
				if strings.Contains(types, "Paused") || strings.Contains(types, "CancelRequested") || strings.Count(types, "Signal ") != 2 {
					t.Errorf("got %s, want the two signals and nothing else from outside", types)
				}
				if s := f.result0("o2"); s != "" && s != "open" {
					t.Errorf("workflow o2 is %s, want that there is none", s)
				}
			})
		})
	}
}

// A signal or an outcome that names what is not there is not taken: no decider could read it.
func TestMessagesThatNameNothing(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(""))
		f.start(startO)
		nothing := &schemas.PayloadRef{Object: "in-0-1-c1-0", Size: 300_000, Digest: strings.Repeat("0", 64)}
		reference := string(schemas.RefPayload(nothing))
		inJSON, err := json.Marshal(nothing)
		if err != nil {
			t.Fatal(err)
		}
		f.publish("drover.default.signal.o.s", reference)
		f.publish("drover.default.signal.o.s", strings.Replace(reference, "00", "zz", 1)) // any other bytes are an input
		f.await("o", schemas.EventSignal)                                                 // the other log is read as fast as it may be
		task := f.pull()
		task.report("success", `,"result":{"$ref":`+string(inJSON)+`}`)
		task.report("failed", `,"reason":"r","details":{"$ref":`+string(inJSON)+`}`)
		task.success()
		f.completes("o")
		for _, got := range f.letters() {
			if got.Reason != "invalid" || !strings.Contains(got.Details, "is a reference to nothing") {
				t.Errorf("got dead letter %+v, want one that names nothing", got)
			}
		}
		if got := f.letters(); len(got) != 3 {
			t.Errorf("got dead letters %v, want the signal and both outcomes", got)
		}
		if types := strings.Join(f.types("o"), " "); strings.Count(types, "Signal ") != 1 {
			t.Errorf("got %s, want one signal", types)
		}
	})
}

// streamEnds tells where the logs and the history end.
func (f *fleet) streamEnds() string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	var ends []string
	for _, name := range []string{ns.StreamIn(0), ns.StreamHistory(0), ns.StreamSignals(), ns.StreamDead()} {
		last, err := f.post.StreamLastSeq(ctx, name)
		if err != nil {
			f.t.Fatal(err)
		}
		ends = append(ends, fmt.Sprint(name, " ", last))
	}
	return strings.Join(ends, ", ")
}
