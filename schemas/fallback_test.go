package schemas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

// What the plan has read before it gave up is no part of what the library reads. Here the name of an attribute is bytes, as clients without a
// type for texts write it.
func TestNothingIsLeftOfAPlanThatGaveUp(t *testing.T) {
	var r schemas.StartRequest
	if err := schemas.Unmarshal([]byte("\x01\x82\xa4type\xa1w\xaaattributes\x81\xc4\x01a\xa1b"), &r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "b"}, r.Attributes); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}

// A body belongs to what was decoded from it, and is parked as it came if that fails: nobody writes to it. Here a field comes twice.
func TestOwnedBodyStaysAsItIs(t *testing.T) {
	body := []byte("\x01\x83\xa5token\xa1t\xa6result\xc4\x04AAAA\xa6result\xc4\x02BB")
	before := bytes.Clone(body)
	var r schemas.Report
	if err := schemas.UnmarshalOwned(body, &r); err != nil || string(r.Result) != "BB" {
		t.Errorf("got %q, %v", r.Result, err)
	}
	if !bytes.Equal(before, body) {
		t.Errorf("the body was\n%q and is\n%q", before, body)
	}
}

// The version is found as every field is: in any case, with escapes, and the last one counts.
func TestUnknownVersionOfJSON(t *testing.T) {
	for _, body := range []string{
		`{"v":2,"token":"t"}`, `{"v":1,"token":"t","v":2}`, `{"V":2,"token":"t"}`, `{"\u0076":2,"token":"t"}`, `{"v":1,"V":2,"token":"t"}`,
	} {
		var h schemas.Heartbeat
		if err := schemas.Unmarshal([]byte(body), &h); !errors.Is(err, schemas.ErrVersion) {
			t.Errorf("%s: got %v and %+v, want ErrVersion", body, err, h)
		}
	}
}

// The plan takes no number that the library refuses.
func TestMinusZero(t *testing.T) {
	for body, want := range map[string]bool{`{"run":"r","due":null,"sequence":-0}`: false, `{"run":"r","due":null,"sequence":0}`: true} {
		quick, library := schemas.QuickJSON([]byte(body), &schemas.Ring{}), json.Unmarshal([]byte(body), new(schemas.Ring))
		if quick != want || (library == nil) != want {
			t.Errorf("%s: the plan takes it: %v; the library: %v", body, quick, library)
		}
	}
}
