package broker_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// A worker that may publish for one list cannot speak for an activity of another, even if it guesses the token.
func TestReportFromAnotherList(t *testing.T) { // S1-41
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(""))
		f.start(startO)
		k := f.pull()
		for _, kind := range []string{"success", "failed", "started", "begin", "canceled"} {
			f.publish(ns.ActOutcome(0, "o", "other"), `{"token":"`+k.Token+`","kind":"`+kind+`","result":"forged","nonce":"n"}`)
		}
		var a schemas.BeatAnswer
		if err := json.Unmarshal(f.request(ns.Beat(0, "o", "other"), `{"token":"`+k.Token+`"}`), &a); err != nil || !a.Gone {
			t.Fatalf("the heartbeat was answered %+v, %v", a, err)
		}
		time.Sleep(time.Minute)
		if got := f.dead(); !slices.Equal(got, []string{"foreign-list", "foreign-list", "foreign-list", "foreign-list", "foreign-list"}) {
			t.Fatalf("dead letters %v", got)
		}
		k.success()
		f.result("o")
		f.wantTypes("o", oneActivity...)
	})
}
