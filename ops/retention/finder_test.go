package retention

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	toolarge "github.com/droverhq/drover/broker/partition/large"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"

	"pgregory.net/rapid"
)

// The finder finds what a search for each name finds.
func TestFinder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.StringMatching(`(in-)?[0AB]{6,12}-[01]`), 1, 12).Draw(t, "names")
		var text []byte
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			text = append(text, rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "noise")...)
			text = append(text, rapid.SampledFrom(names).Draw(t, "name")[rapid.IntRange(0, 2).Draw(t, "cut"):]...)
		}
		f := newFinder(names)
		f.search(text)
		for _, n := range names {
			if len(n) < tail {
				continue
			}
			if want := !bytes.Contains(text, []byte(n)); f.missing[n] != want {
				t.Fatalf("%q in %q: missing is %v, want %v", n, text, f.missing[n], want)
			}
		}
	})
}

func TestFinderReadsEscapes(t *testing.T) {
	const name = "01JABCDEFGHJKMNPQRSTVWXYZ0"
	for text, want := range map[string]bool{
		`{"object":"` + name + `"}`:                                   true,
		`{"object":"\u0030\u0031\u004aABCDEFGHJKMNPQRSTVWXYZ0"}`:      true,
		`{"object":"\u0030\u0031\u004AABCDEFGHJKMNPQRSTVWXY\u005a0"}`: true,
		`{"object":"\u003x1JABCDEFGHJKMNPQRSTVWXYZ0"}`:                false,
		`\u00`:   false,
		name[1:]: false,
	} {
		f := newFinder([]string{name})
		if f.search([]byte(text)); f.missing[name] == want {
			t.Errorf("%s: found is %v, want %v", text, !want, want)
		}
	}
}

func FuzzFinder(f *testing.F) {
	f.Add([]byte(`{"$ref":{"object":"in-3-17-c1-0"}}`), "in-3-17-c1-0")
	f.Add([]byte(`\u0069n-3-17-c1-0 \u00`), "in-3-17-c1-0")
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		if len(name) < tail {
			return
		}
		x := newFinder([]string{name})
		if x.search(text); x.missing[name] && bytes.Contains(text, []byte(name)) {
			t.Fatalf("%q in %q was not found", name, text)
		}
	})
}

// What stands for an object, though it does not spell its name out.
func TestMarkOne(t *testing.T) {
	const ns = subject.Namespace("default")
	j := &Janitor{o: Options{Namespace: ns, Partitions: 4}}
	at, large := time.Unix(1e9, 5).UTC(), make([]byte, schemas.PayloadThreshold+1)
	record, err := schemas.Marshal(&schemas.Record{
		WorkflowID: "upload-in-recor", Run: "r", First: 1,
		Events: []schemas.Event{{Attributes: &schemas.WorkflowStarted{
			WorkflowType: "t", TagList: slices.Repeat([]string{"upload-in-recor"}, 200), Input: schemas.RefPayload(&schemas.PayloadRef{Object: "upload-in-record", Size: 1, Digest: fmt.Sprintf("%064d", 0)}),
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if record[0] != 3 || bytes.Contains(record, []byte("upload-in-record")) {
		t.Error("the record is not packed, so it shows nothing")
	}
	letter, err := schemas.MarshalJSON(&schemas.DeadLetter{Reason: "x", Body: []byte(`{"$ref":{"object":"upload-in-letter"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	inbox := natsconn.Stored{Subject: ns.In(2, "w", "start"), Seq: 7, Time: at, Data: large}
	signal := natsconn.Stored{Subject: ns.SignalStored(3, "w", "go"), Seq: 8, Time: at, Data: large}
	small := signal
	small.Data = large[:10]
	for name, tc := range map[string]struct {
		m      natsconn.Stored
		object string
		named  bool
	}{
		"a large message in an inbox": {inbox, toolarge.SpillNames(2, false, inbox)[0], true},
		"its second payload":          {inbox, toolarge.SpillNames(2, false, inbox)[1], true},
		"a large signal":              {signal, toolarge.SpillNames(3, true, signal)[0], true},
		"another partition":           {signal, toolarge.SpillNames(2, true, signal)[0], false},
		"a message of no such size":   {small, toolarge.SpillNames(3, true, signal)[0], false},
		"a packed record":             {natsconn.Stored{Subject: ns.History(0, "w", "r"), Seq: 1, Data: record}, "upload-in-record", true},
		"a dead letter":               {natsconn.Stored{Subject: ns.Dead("x", "0"), Seq: 1, Data: letter}, "upload-in-letter", true},
		"what somebody keeps":         {natsconn.Stored{Subject: "$KV.b.k", Seq: 1, Data: []byte("\x03 upload-in-bucket")}, "upload-in-bucket", true},
	} {
		f := newFinder([]string{tc.object, "another-one"})
		if err := j.markOne(f, tc.m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if f.missing[tc.object] == tc.named {
			t.Errorf("%s: named is %v, want %v", name, !tc.named, tc.named)
		}
	}
	broken := natsconn.Stored{Subject: ns.History(0, "w", "r"), Seq: 1, Data: record[:20]}
	if err := j.markOne(newFinder([]string{"another-one"}), broken); err == nil {
		t.Error("a record that cannot be read names nothing, it seems")
	}
}
