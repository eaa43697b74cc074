package schemas_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

var digest = strings.Repeat("0af9", 16)

func TestPayloadRef(t *testing.T) {
	want := &schemas.PayloadRef{Object: "01J-a_b", Size: 300_000, Digest: digest}
	p := schemas.RefPayload(want)
	got, ok := p.Ref()
	if !ok {
		t.Fatalf("%q is no reference", p)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if wire := `{"$ref":{"object":"01J-a_b","size":300000,"digest":"` + digest + `"}}`; string(b) != wire {
		t.Fatalf("got %s, want %s", b, wire)
	}
	var back schemas.Payload
	if err := json.Unmarshal(b, &back); err != nil || string(back) != string(p) {
		t.Fatalf("got %q, %v; want %q", back, err, p)
	}
	var v any
	if err := p.Decode(&v); !errors.Is(err, schemas.ErrReference) {
		t.Fatalf("got %v, want ErrReference", err)
	}
	if _, ok := schemas.Payload(nil).Ref(); ok {
		t.Fatal("nothing is no reference")
	}
}

// What a newer version says in a reference stays in it.
func TestPayloadRefKeepsLaterFields(t *testing.T) {
	wire := `{"$ref":{"object":"o","size":1,"digest":"` + digest + `","codec":"aes"}}`
	var p schemas.Payload
	if err := json.Unmarshal([]byte(wire), &p); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.Ref(); !ok {
		t.Fatalf("%q is no reference", p)
	}
	if b, err := json.Marshal(p); err != nil || string(b) != wire {
		t.Fatalf("got %s, %v; want %s", b, err, wire)
	}
}

// What only looks like a reference is a user's payload, or an error that says what a reference is.
func TestPayloadRefLookalikes(t *testing.T) {
	for _, tt := range []struct{ name, payload, want string }{
		{"a pointer of JSON Schema", `{"$ref":"#/definitions/a"}`, `{"$ref":"#/definitions/a"}`},
		{"a user's object", `{"$ref":{"a":1}}`, `{"$json":{"$ref":{"a":1}}}`},
		{"a user's object in every field", `{"$ref":{"object":"o","size":1,"digest":"` + digest + `"}}`, `{"$json":{"$ref":{"object":"o","size":1,"digest":"` + digest + `"}}}`},
		{"the prefix alone", "\x00drover-ref\x00", `{"$text":"\u0000drover-ref\u0000"}`},
		{"the prefix and nonsense", "\x00drover-ref\x00{}", `{"$text":"\u0000drover-ref\u0000{}"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := schemas.Payload(tt.payload)
			if _, ok := p.Ref(); ok {
				t.Fatal("it is taken for a reference")
			}
			b, err := json.Marshal(p)
			if err != nil || string(b) != tt.want {
				t.Fatalf("got %s, %v; want %s", b, err, tt.want)
			}
			var back schemas.Payload
			if err := json.Unmarshal(b, &back); err != nil || string(back) != tt.payload {
				t.Fatalf("came back as %q, %v", back, err)
			}
		})
	}
	for _, tt := range []struct{ name, body, want string }{
		{"empty", `{"$ref":{}}`, "object"},
		{"wild object", `{"$ref":{"object":"a.>","size":1,"digest":"` + digest + `"}}`, "object"},
		{"no size", `{"$ref":{"object":"a","digest":"` + digest + `"}}`, "size"},
		{"short digest", `{"$ref":{"object":"a","size":1,"digest":"ab"}}`, "digest"},
		{"upper-case digest", `{"$ref":{"object":"a","size":1,"digest":"` + strings.ToUpper(digest) + `"}}`, "digest"},
		{"size as text", `{"$ref":{"object":"a","size":"1","digest":"` + digest + `"}}`, "size"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var p schemas.Payload
			if err := json.Unmarshal([]byte(tt.body), &p); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want an error about %s", err, tt.want)
			}
		})
	}
}
