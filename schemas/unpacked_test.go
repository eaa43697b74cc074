package schemas_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/droverhq/drover/schemas"
)

func TestUnpacked(t *testing.T) {
	const name = "wanted-in-plain-sight"
	record, err := schemas.Marshal(&schemas.Record{WorkflowID: name[:len(name)-1], Run: "r", First: 1, Events: []schemas.Event{
		{Attributes: &schemas.WorkflowStarted{WorkflowType: "t", Input: bytes.Repeat([]byte(name+" "), 50)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := schemas.Unpacked(record); err != nil || bytes.Count(plain, []byte(name)) != 50 || len(plain) <= len(record) {
		t.Errorf("a packed record: got %q, %v", plain, err)
	}
	for _, same := range []string{"", `{"a":1}`, "\x81\xa1a\x01", "\x02" + name} {
		if plain, err := schemas.Unpacked([]byte(same)); err != nil || string(plain) != same {
			t.Errorf("%q: got %q, %v", same, plain, err)
		}
	}
	for _, broken := range [][]byte{record[:len(record)-1], record[:1], {3, 0xff, 0xff, 0xff, 0xff, 0x0f}} {
		if _, err := schemas.Unpacked(broken); !errors.Is(err, schemas.ErrMalformed) {
			t.Errorf("%q: got %v, want ErrMalformed", broken, err)
		}
	}
}
