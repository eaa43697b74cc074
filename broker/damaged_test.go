package broker_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// damages are histories that cannot be followed, by what is added to one.
var damages = map[string]func(*fleet, *schemas.Record) []byte{
	"does not follow":     func(_ *fleet, r *schemas.Record) []byte { r.Previous = []byte("another"); return encoded(r) },
	"has a gap":           func(_ *fleet, r *schemas.Record) []byte { r.First += 2; return encoded(r) },
	"cannot be read":      func(*fleet, *schemas.Record) []byte { return []byte("damaged") },
	"unreadable snapshot": func(_ *fleet, r *schemas.Record) []byte { r.Snapshot = []byte("damaged"); return encoded(r) },
}

func encoded(r *schemas.Record) []byte {
	body, err := schemas.Marshal(r)
	if err != nil {
		panic(err)
	}
	return body
}

// damage adds a record to the run of a workflow that does not fit; what it returns takes it away again.
func (f *fleet) damage(id string, how func(*fleet, *schemas.Record) []byte) (heal func()) {
	f.t.Helper()
	last := f.lastRecord(id)
	var r schemas.Record
	if err := schemas.Unmarshal(last.Data, &r); err != nil {
		f.t.Fatal(err)
	}
	hash, end := sha256.Sum256(last.Data), r.Events[len(r.Events)-1]
	r.First, r.Previous, r.Snapshot = end.ID+1, hash[:], nil
	r.Events = []schemas.Event{{ID: r.First, Time: end.Time, Attributes: &schemas.Signal{SignalName: "n"}}}
	seq, err := f.post.PublishSync(f.t.Context(), last.Subject, natsconn.Header{schemas.StatusHeader: last.Header[schemas.StatusHeader]}, how(f, &r))
	if err != nil {
		f.t.Fatal(err)
	}
	return func() { f.t.Helper(); f.without(seq) }
}

// without makes the history of partition 0 anew, with what is no record of a run in the place of one message.
func (f *fleet) without(seq uint64) {
	f.t.Helper()
	var all []natsconn.Stored
	if err := f.post.Scan(f.t.Context(), ns.StreamHistory(0), natsconn.ReadOptions{}, func(s natsconn.Stored) error {
		s.Data = slices.Clone(s.Data)
		all = append(all, s)
		return nil
	}); err != nil {
		f.t.Fatal(err)
	}
	s, err := f.js.Stream(f.t.Context(), ns.StreamHistory(0))
	if err != nil {
		f.t.Fatal(err)
	}
	config := s.CachedInfo().Config
	config.FirstSeq = all[0].Seq
	if err := f.js.DeleteStream(f.t.Context(), config.Name); err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.js.CreateStream(f.t.Context(), config); err != nil {
		f.t.Fatal(err)
	}
	for _, m := range all {
		h := natsconn.Header{}
		for _, k := range []string{schemas.StatusHeader, "Drover-More"} {
			if v := m.Header.Get(k); v != "" {
				h.Set(k, v)
			}
		}
		if m.Seq == seq {
			m.Subject, m.Data, h = ns.History(0, "nobody", "r"), nil, nil
		}
		if got, err := f.post.PublishSync(f.t.Context(), m.Subject, h, m.Data); err != nil || got != m.Seq {
			f.t.Fatalf("record %d is stored as %d: %v", m.Seq, got, err)
		}
	}
}

// effects is up to where the checkpoint says that every effect is acknowledged, and the last record of the history.
func (f *fleet) effects() (settled, last uint64) {
	f.t.Helper()
	value, _, err := f.post.KVGet(f.t.Context(), ns.BucketCheckpoints(), "partition.0")
	if err != nil {
		f.t.Fatal(err)
	}
	var c schemas.Checkpoint
	if err := schemas.Unmarshal(value, &c); err != nil {
		f.t.Fatal(err)
	}
	_, last, err = f.post.StreamState(f.t.Context(), ns.StreamHistory(0))
	if err != nil {
		f.t.Fatal(err)
	}
	return c.Effects, last
}

// damagedLetters are the dead letters about damage, by their subjects.
func (f *fleet) damagedLetters() (subjects []string) {
	f.t.Helper()
	for _, d := range f.letters() {
		if d.Reason == "damaged" {
			subjects = append(subjects, d.Subject)
		}
	}
	return subjects
}

// repairs asks for a repair, and tells the answer's error; "" if there is none.
func (f *fleet) repairs(id string) string {
	f.t.Helper()
	var a schemas.AckResponse
	f.apiInto(&a, "repair", `{"workflowId":"`+id+`"}`)
	if a.Error == nil {
		return ""
	}
	return a.Error.Error()
}

// E10: a damaged run that an owner meets at take-over is set aside after some tries. It is told of, positions go on, and once its history can be
// followed it goes on, too.
func TestDamagedRunHoldsNothingUp(t *testing.T) {
	for name, how := range damages {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.decider("order", func(k *decisionTask) string {
					if k.has("Signal") {
						return complete
					}
					return "[]"
				})
				a := f.node("a", nil)
				f.start(startO)
				f.await("o", schemas.EventDeciderCompleted)
				a.stop()
				heal := f.damage("o", how)
				b := f.node("b", nil)
				f.publish("drover.default.signal.o.early", "") // the first owner has tried it a few times by the time that this comes
				time.Sleep(10 * time.Second)
				f.starts(3)
				time.Sleep(10 * time.Second)
				if settled, last := f.effects(); settled < last {
					t.Errorf("the effects position is %d and the last record %d: a damaged run holds it up", settled, last)
				}
				letters := f.damagedLetters()
				if want := []string{"drover.default.history.0.o.*", "drover.default.sig.0.o.early"}; !slices.Equal(slices.Sorted(slices.Values(letters)), want) {
					t.Errorf("dead letters about %v, want %v", letters, want)
				}
				if got := f.audited("o").Runs[0].Unreadable; !strings.Contains(got, "the history is damaged") {
					t.Errorf("the audit says of it %q", got)
				}
				b.stop()
				f.node("c", nil)
				time.Sleep(10 * time.Second)
				if got := f.damagedLetters(); len(got) != len(letters) {
					t.Errorf("the next owner has added dead letters: %v", got)
				}
				if got := f.repairs("o"); !strings.Contains(got, "damaged") {
					t.Errorf("a repair is answered with %q", got)
				}
				heal()
				if got := f.repairs("o"); got != "" {
					t.Fatalf("a repair of what can be read again is answered with %q", got)
				}
				f.publish("drover.default.signal.o.go", "")
				f.completes("o")
			})
		})
	}
}

// A run that is set aside by its owner is looked at again now and then, and what it has open is repeated: here the question to its decider.
func TestDamagedRunGoesOnByItself(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		f.start(startO)
		a.stop()
		heal := f.damage("o", damages["does not follow"])
		f.node("b", nil)
		time.Sleep(20 * time.Second)
		if got := f.damagedLetters(); len(got) == 0 {
			t.Error("no dead letter tells of it")
		}
		heal()
		f.decider("order", func(*decisionTask) string { return complete })
		f.completes("o")
	})
}

// E10: what a later version may have written is not damaged. Everything waits for a server that can read it.
func TestLaterRunIsNotSetAside(t *testing.T) {
	later := map[string]func(*fleet, *schemas.Record) []byte{
		"event": func(_ *fleet, r *schemas.Record) []byte {
			r.Events[0].Attributes = &schemas.Unknown{Type: "WorkflowFrozen", Raw: []byte("\x80")}
			return encoded(r)
		},
		"record":   func(*fleet, *schemas.Record) []byte { return []byte("\x07\x80") },
		"snapshot": func(_ *fleet, r *schemas.Record) []byte { r.Snapshot = []byte("\x07\x80"); return encoded(r) },
	}
	for name, how := range later {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				a := f.node("a", nil)
				f.start(startO)
				a.stop()
				heal := f.damage("o", how)
				_, before := f.effects()
				b := f.node("b", nil)
				time.Sleep(10 * time.Second)
				for i := range 300 { // more than are kept in memory
					f.publish(fmt.Sprintf("drover.default.signal.o.s%d", i), "")
				}
				time.Sleep(20 * time.Second)
				if settled, _ := f.effects(); settled >= before {
					t.Errorf("the effects position is %d, past record %d, whose effects nobody knows", settled, before)
				}
				if got := f.damagedLetters(); len(got) > 0 {
					t.Errorf("dead letters about %v", got)
				}
				if got := f.repairs("o"); !strings.Contains(got, "later version") {
					t.Errorf("a repair is answered with %q", got)
				}
				heal()
				f.repairs("o")
				f.decider("order", func(k *decisionTask) string {
					if f.happened("o", schemas.EventSignal) < 300 {
						return "[]"
					}
					return complete
				})
				f.completes("o")
				b.stop()
				if got := f.happened("o", schemas.EventSignal); got != 300 {
					t.Errorf("%d of 300 signals are in the history", got)
				}
			})
		})
	}
}

// E11: every verb of the API is answered with the damage in bounded time, and so is every way to a run; what nobody waits for is kept as a dead letter. A planned
// hand-over takes no longer for it.
func TestDamagedRunIsAnsweredFor(t *testing.T) {
	verbs := map[string]string{
		"repair": "", "describe": "", "why": "", "history": "", "result": "", "terminate": "", "cancel": "", "pause": "", "resume": "", "replay": "", "replayForce": "",
		"signal": `,"name":"n"`, "breakLock": `,"lock":"l"`, "start": `,"type":"order"`,
	}
	for _, known := range []bool{false, true} {
		t.Run(map[bool]string{false: "met with the request", true: "known as damaged"}[known], func(t *testing.T) {
			for verb, more := range verbs {
				t.Run(verb, func(t *testing.T) {
					virtually(t, 1, func(t *testing.T, f *fleet) {
						a := f.node("a", nil)
						f.start(startO)
						a.stop()
						heal := f.damage("o", damages["does not follow"])
						b := f.node("b", nil)
						time.Sleep(time.Second)
						if known {
							time.Sleep(20 * time.Second)
						}
						var answer struct {
							Error *schemas.Error `json:"error"`
						}
						raw := f.tryWithin(30*time.Second, ns.API(verb), `{"workflowId":"o"`+more+`}`)
						if err := json.Unmarshal(raw, &answer); err != nil {
							t.Fatalf("answered with %q: %v", raw, err)
						}
						if answer.Error == nil || answer.Error.Code != schemas.CodeInternal || !strings.Contains(answer.Error.Message, "damaged") || answer.Error.Hint == "" {
							t.Errorf("answered with %+v, want the damage", answer.Error)
						}
						began := time.Now()
						b.stop()
						if took := time.Since(began); took > 2*time.Second {
							t.Errorf("the hand-over took %v", took)
						}
						heal()
					})
				})
			}
		})
	}
}

// tryWithin asks once; nil if nobody answers within d.
func (f *fleet) tryWithin(d time.Duration, subj, body string) []byte {
	f.t.Helper()
	m, err := f.nc.Request(subj, []byte(body), d)
	if err != nil {
		return nil
	}
	return m.Data
}

// E11, E26: whatever comes by a log for a damaged run takes its way: whoever asked is answered, and what nobody could send again is a dead letter.
// No position waits.
func TestMailOfADamagedRun(t *testing.T) {
	run := ""
	for name, tc := range map[string]struct {
		subject, body string
		letter        bool
	}{
		"signal":              {"drover.default.signal.o.s", "1", true},
		"a workflow's":        {"drover.default.in.0.o.signal", `{"v":1,"name":"s","source":{"workflowId":"p","run":"p1"},"scheduledEventId":5}`, true},
		"outcome":             {"drover.default.in.0.o.act.main", `{"v":1,"token":"RUN.5.1","kind":"success"}`, true},
		"child":               {"drover.default.in.0.o.child", `{"v":1,"parentRun":"RUN","scheduledEventId":5,"child":{"workflowId":"c","run":"c1"},"status":"completed"}`, true},
		"external":            {"drover.default.in.0.o.external", `{"v":1,"sourceRun":"RUN","scheduledEventId":5,"target":{"workflowId":"c"}}`, true},
		"a workflow's cancel": {"drover.default.in.0.o.cancel", `{"v":1,"workflowId":"o","run":"RUN"}`, true},
		"cancel":              {"drover.default.in.0.o.cancel", `{"v":1,"workflowId":"o","run":"RUN","replyTo":"REPLY"}`, false},
		"terminate":           {"drover.default.in.0.o.terminate", `{"v":1,"workflowId":"o","run":"RUN","replyTo":"REPLY"}`, false},
		"start":               {"drover.default.in.0.o.start", `{"v":1,"workflowId":"o","run":"r2","type":"order","replyTo":"REPLY"}`, false},
		"alarm":               {"drover.default.in.0.o.alarm", `{"v":1,"run":"RUN","due":5,"sequence":1}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				a := f.node("a", nil)
				f.start(startO)
				run = f.lastRun("o")
				a.stop()
				heal := f.damage("o", damages["does not follow"])
				inbox := f.nc.NewInbox()
				answers, err := f.nc.SubscribeSync(inbox)
				if err != nil {
					t.Fatal(err)
				}
				body := strings.NewReplacer("RUN", run, "REPLY", inbox).Replace(tc.body)
				f.publish(tc.subject, body) // before it is known
				f.node("b", nil)
				time.Sleep(20 * time.Second)
				f.publish(tc.subject, body) // and after that
				time.Sleep(20 * time.Second)
				letters := slices.DeleteFunc(f.damagedLetters(), func(s string) bool { return strings.HasSuffix(s, "history.0.o.*") })
				if tc.letter && len(letters) != 2 || !tc.letter && len(letters) != 0 {
					t.Errorf("dead letters about %v; want some: %v", letters, tc.letter)
				}
				if strings.Contains(tc.body, "REPLY") {
					for range 2 {
						m, err := answers.NextMsg(time.Second)
						if err != nil {
							t.Fatal(err)
						}
						if !strings.Contains(string(m.Data), "damaged") {
							t.Errorf("answered with %s", m.Data)
						}
					}
				}
				f.wantConsumed()
				heal()
			})
		})
	}
}

// wantConsumed fails unless the checkpoint is past all that is in the logs.
func (f *fleet) wantConsumed() {
	f.t.Helper()
	f.checkpoint(func(c *schemas.Checkpoint) {
		for stream, at := range map[string]uint64{ns.StreamIn(0): c.Inbox.Sequence, ns.StreamSignals(): c.Signals.Sequence} {
			if _, last, err := f.post.StreamState(f.t.Context(), stream); err != nil || at < last {
				f.t.Errorf("the checkpoint is at %d of %d of %s (%v)", at, last, stream, err)
			}
		}
	})
}

// E26: a heartbeat of an activity of a damaged run is answered, and sends nobody home: the run may be mended.
func TestHeartbeatOfADamagedRun(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", func(*decisionTask) string {
			return `[{"type":"ScheduleActivity","attributes":{"activityId":"a","activityType":"t","list":"main"}}]`
		})
		a := f.node("a", nil)
		f.start(startO)
		f.await("o", schemas.EventActivityScheduled)
		a.stop()
		heal := f.damage("o", damages["does not follow"])
		f.node("b", nil)
		time.Sleep(20 * time.Second)
		for range 3 {
			var got schemas.BeatAnswer
			raw := f.request("drover.default.beat.0.o.main", `{"v":1,"token":"`+f.lastRun("o")+`.5.1"}`)
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
			if got.Gone || !strings.Contains(got.Reason, "damaged") {
				t.Errorf("a heartbeat is answered with %s", raw)
			}
		}
		heal()
	})
}

// E10: events that a decider has not seen may be damaged before the last snapshot, which is whole. The decider can be shown them never.
func TestDamagedWindow(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		f.start(startO)
		a.stop()
		s := execution.New("o", f.lastRun("o"))
		for _, e := range f.recorded("o") {
			s.Apply(e)
		}
		last := f.lastRecord("o")
		heal := f.damage("o", damages["cannot be read"])
		hash := sha256.Sum256(last.Data)
		e := schemas.Event{ID: s.LastID + 1, Time: f.recordedEnd(last), Attributes: &schemas.Signal{SignalName: "n"}}
		s.Apply(e)
		snapshot, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		body := encoded(&schemas.Record{
			WorkflowID: "o", Run: s.Run, First: e.ID, Fence: 1, Previous: hash[:], Snapshot: snapshot, Events: []schemas.Event{e},
		})
		if _, err := f.post.PublishSync(t.Context(), last.Subject, natsconn.Header{schemas.StatusHeader: last.Header[schemas.StatusHeader]}, body); err != nil {
			t.Fatal(err)
		}
		b := f.node("b", nil)
		time.Sleep(30 * time.Second)
		if settled, last := f.effects(); settled < last {
			t.Errorf("the effects position is %d and the last record %d", settled, last)
		}
		if got := f.damagedLetters(); len(got) != 1 {
			t.Errorf("dead letters about %v, want one", got)
		}
		if raw := f.tryRequest(ns.API("describe"), `{"workflowId":"o"}`); !strings.Contains(string(raw), "damaged") {
			t.Errorf("describe is answered with %s", raw)
		}
		b.stop()
		heal()
		f.decider("order", func(*decisionTask) string { return complete })
		f.node("c", nil)
		f.repairs("o")
		f.completes("o")
	})
}

// recordedEnd is the time of the last event of a record.
func (f *fleet) recordedEnd(s *natsconn.Stored) schemas.Timestamp {
	f.t.Helper()
	var r schemas.Record
	if err := schemas.Unmarshal(s.Data, &r); err != nil {
		f.t.Fatal(err)
	}
	return r.Events[len(r.Events)-1].Time
}
