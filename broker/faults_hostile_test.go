package broker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// counts asks the API how many dead letters there are for each reason.
func (f *fleet) counts() map[string]int64 {
	f.t.Helper()
	var a schemas.DeadResponse
	if err := schemas.Unmarshal(f.request(ns.API("dead"), `{"count":true}`), &a); err != nil || a.Error != nil {
		f.t.Fatal(err, a.Error)
	}
	got := map[string]int64{}
	for _, c := range a.Counts {
		got[c.Reason] = c.Count
	}
	return got
}

// Outcomes with a token of an earlier attempt, of another run, of another activity or with one that is made up are refused,
// kept in the dead letters, and counted there by reason.
func TestForgedOutcomes(t *testing.T) { // S1-41, I6
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(`,"retry":{"initialInterval":1,"maximumAttempts":3}`))
		f.start(startO)
		f.start(`{"workflowId":"other","type":"order","run":"r2","requestId":"q2"}`)
		// The tasks of both runs, in any order.
		var first, other *task
		for first == nil || other == nil {
			switch k := f.pull(); {
			case strings.HasPrefix(k.Token, "r1."):
				first = k
			default:
				other = k
			}
		}
		first.report("failed", `,"reason":"bad luck"`)
		if err := first.msg.Ack(); err != nil {
			t.Fatal(err)
		}
		second := f.pull()
		if second.Attempt != 2 {
			t.Fatalf("attempt %d, want 2", second.Attempt)
		}
		for _, forged := range []string{first.Token, other.Token, "r1.99.1", "r1.5.3", "r9.5.1", "made up", ""} {
			f.publish(first.Report, `{"token":"`+forged+`","kind":"success","result":"forged"}`)
		}
		f.publish(other.Report, `{"token":"`+second.Token+`","kind":"success","result":"forged"}`) // on another workflow's subject
		time.Sleep(time.Minute)
		second.success()
		other.success()
		for _, id := range []string{"o", "other"} {
			f.completes(id)
			for _, e := range f.events(id) {
				if a, ok := e.Attributes.(*schemas.ActivitySuccess); ok && string(a.Result) != `"fine"` {
					t.Fatalf("the forged result %s is in the history of %s", a.Result, id)
				}
			}
		}
		counts, letters := f.counts(), f.letters()
		total := int64(0)
		for _, n := range counts {
			total += n
		}
		if int(total) != len(letters) || total != 8 {
			t.Fatalf("%d letters, counted %v, want all 8 forged outcomes", len(letters), counts)
		}
		if counts["stale-token"] < 3 {
			t.Fatalf("counted %v, want those with an old token as such", counts)
		}
		t.Logf("counted %v", counts)
	})
}

// A client with the right to publish to the history stream, which nobody but a broker should have, writes whatever it
// likes. No run is forked; what it wrote for runs of its own invention is not taken for a history; everybody else's work
// goes on.
func TestForgedHistory(t *testing.T) { // P-2, I1
	forged := func(first int64, run string, previous []byte) []byte {
		body, err := schemas.Marshal(&schemas.Record{
			WorkflowID: "o", Run: run, First: first, Fence: 1, Previous: previous,
			Events: []schemas.Event{{ID: first, Time: 1, Attributes: &schemas.WorkflowTerminated{Reason: "forged"}}},
		})
		if err != nil {
			panic(err)
		}
		return body
	}
	for name, forge := range map[string]func(f *fleet) error{
		"over the end of a run, without an expectation": func(f *fleet) error {
			last, err := f.post.LastBySubject(f.t.Context(), ns.StreamHistory(0), ns.History(0, "o", "r1"))
			if err != nil {
				return err
			}
			h := natsconn.Header{}
			natsconn.ExpectLastSubjectSeq(h, last.Seq-1)
			if _, err := f.post.PublishSync(f.t.Context(), ns.History(0, "o", "r1"), h, forged(6, "r1", nil)); err == nil {
				return fmt.Errorf("a write after a record that is not the last was taken")
			}
			return nil
		},
		"a run of its own, with rubbish": func(f *fleet) error {
			_, err := f.post.PublishSync(f.t.Context(), ns.History(0, "stranger", "x"), nil, []byte("rubbish"))
			return err
		},
		"a fence of an older claim": func(f *fleet) error {
			body, err := schemas.Marshal(&schemas.Fence{Claim: 0, Owner: "evil"})
			if err != nil {
				return err
			}
			h := natsconn.Header{}
			natsconn.ExpectLastSubjectSeq(h, 0)
			if _, err := f.post.PublishSync(f.t.Context(), ns.Fence(0), h, body); err == nil {
				return fmt.Errorf("a second first fence was taken")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.decider("order", one(""))
				f.start(startO)
				k := f.pull()
				if err := forge(f); err != nil {
					t.Fatal(err)
				}
				k.success()
				f.completes("o")
				f.wantTypes("o", oneActivity...)
				if err := f.post.PurgeSubject(t.Context(), ns.StreamHistory(0), ns.History(0, "stranger", "x")); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// Somebody with all the rights of a broker tampers with the claims while work goes on. Whatever that does to ownership, the
// histories stay whole, and the service is back within the time of a claim.
func TestClaimTamperingUnderLoad(t *testing.T) { // I9, P-2, P-16
	const key, kv = "partition.0", "$KV.drover-default-claims."
	for name, tamper := range map[string]func(f *fleet) error{
		"the key is deleted": func(f *fleet) error {
			return f.post.Publish(kv+key, natsconn.Header{"KV-Operation": {"DEL"}}, nil)
		},
		"the key is overwritten": func(f *fleet) error { return f.post.Publish(kv+key, nil, []byte("mine")) },
		"the key is taken by a forged claim": func(f *fleet) error {
			return f.post.Publish(kv+key, nil, []byte(`{"node":"evil","nonce":"e","ttl":10}`))
		},
		"the bucket is rolled up": func(f *fleet) error {
			return f.post.Publish(kv+"x", natsconn.Header{"Nats-Rollup": {"all"}}, nil)
		},
		"the bucket is emptied": func(f *fleet) error {
			return f.post.PurgeSubject(f.t.Context(), "KV_"+ns.BucketClaims(), kv+">")
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.node("b", nil)
				f.decider("order", one(""))
				const n = 20
				began := time.Now()
				for i := range n {
					if i%6 == 3 {
						if err := tamper(f); err != nil {
							t.Fatal(err)
						}
					}
					f.publish(ns.In(0, fmt.Sprintf("w%d", i), "start"), fmt.Sprintf(`{"workflowId":"w%d","type":"order","run":"r%d"}`, i, i))
					f.pull().success()
					time.Sleep(time.Second)
				}
				for i := range n {
					f.completes(fmt.Sprintf("w%d", i))
					f.wantTypes(fmt.Sprintf("w%d", i), oneActivity...)
				}
				took := time.Since(began)
				// Three tamperings; each costs at most the TTL of the forged claim and a third of it until the owner notices.
				if limit := n*time.Second + 3*16*time.Second; took > limit {
					t.Fatalf("took %v, want %v at most", took, limit)
				}
				t.Logf("took %v", took)
			})
		})
	}
}

// A stream that is full refuses: nothing is decided by halves, and when there is room again everything goes on.
func TestStreamLimits(t *testing.T) {
	for name, stream := range map[string]string{
		"history": ns.StreamHistory(0), "inbox": ns.StreamIn(0), "tasks": ns.StreamTasks("main"), "alarms": ns.StreamAlarms(0),
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.decider("order", one(`,"startToCloseTimeout":3600`))
				f.start(`{"workflowId":"warm","type":"order","run":"r0"}`) // the list is made by the first task
				f.pull().success()
				f.result("warm")
				s, err := f.js.Stream(t.Context(), stream)
				if err != nil {
					t.Fatal(err)
				}
				config := s.CachedInfo().Config
				was := config
				config.MaxMsgs, config.Discard = max(int64(s.CachedInfo().State.Msgs), 1), jetstream.DiscardNew
				config.DiscardNewPerSubject = false
				if _, err := f.js.UpdateStream(t.Context(), config); err != nil {
					t.Fatal(err)
				}
				// Not answered, or refused, or begun: the client repeats it with the same ids.
				f.tryRequest(ns.API("start"), startO)
				time.Sleep(20 * time.Second)
				if _, err := f.js.UpdateStream(t.Context(), was); err != nil {
					t.Fatal(err)
				}
				if a := f.start(startO); a["run"] != "r1" {
					t.Fatalf("start answered %v", a)
				}
				f.pull().success()
				f.completes("o")
				f.wantTypes("o", oneActivity...)
			})
		})
	}
}

// A foreign client floods the inbox of a partition with messages for workflows that do not exist, and with the largest that
// the server takes. Work goes on beside it.
func TestFlood(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(""))
		f.start(startO)
		k := f.pull()
		large := strings.Repeat("x", int(f.post.MaxPayload())-1024)
		for i := range 500 {
			if err := f.nc.Publish(ns.ActOutcome(0, fmt.Sprintf("nobody%d", i), "main"), []byte(`{"token":"r.5.1","kind":"success"}`)); err != nil {
				t.Fatal(err)
			}
			if i%100 == 0 {
				if err := f.nc.Publish(k.Report, []byte(large)); err != nil {
					t.Fatal(err)
				}
			}
		}
		f.flush()
		k.success()
		f.completes("o")
		f.wantTypes("o", oneActivity...)
		for wait := 0; ; wait++ {
			if counts := f.counts(); counts["unknown-workflow"] == 500 && counts["undecodable"]+counts["too-large"] == 5 {
				break
			} else if wait == 100 {
				t.Fatalf("counted %v", counts)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// A write of an owner that stood still for longer than its claim lasts comes when another owns the partition: it is refused,
// and the zombie starts anew (SIGSTOP and SIGCONT).
func TestZombieOwner(t *testing.T) { // P-2, P-16, I9
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", one(""))
		var held []string
		a := f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if subj == ns.History(0, "o", "r1") && len(held) == 0 { // the first record is on its way when the process stops
				held = append(held, subj)
				return cutwire.Late
			}
			if len(held) > 0 && len(held) < 1000 && strings.HasPrefix(subj, "$KV."+ns.BucketClaims()) {
				held = append(held, subj)
				return cutwire.Swallow // and so it renews nothing
			}
			return cutwire.Pass
		})
		a.wire.Delay(25 * time.Second)
		f.publish(ns.In(0, "o", "start"), startO)
		time.Sleep(time.Second)
		f.node("b", nil)
		f.pull().success()
		f.completes("o")
		time.Sleep(time.Minute)
		f.wantTypes("o", oneActivity...)
	})
}
