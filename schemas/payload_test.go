package schemas_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/schemas"
)

func TestPayloadJSON(t *testing.T) {
	deep := strings.Repeat("[", 400) + strings.Repeat("]", 400)
	for _, tt := range []struct{ name, payload, want string }{
		{"object", `{"a":1}`, `{"a":1}`},
		{"array", `[1,"x",null]`, `[1,"x",null]`},
		{"number keeps its digits", `12.50`, `12.50`},
		{"big number", `123456789012345678901234567890`, `123456789012345678901234567890`},
		{"string", `"hello"`, `"hello"`},
		{"bool", `true`, `true`},
		{"empty object", `{}`, `{}`},
		{"text", `hello`, `{"$text":"hello"}`},
		{"text with quotes", `say "hi"`, `{"$text":"say \"hi\""}`},
		{"two values", `1 2`, `{"$text":"1 2"}`},
		{"space", ` `, `{"$text":" "}`},
		{"bytes", "\xff\x00", `{"$bytes":"/wA="}`},
		{"JSON string that is not UTF-8", "\"\xff\"", `{"$bytes":"Iv8i"}`},
		{"looks like text", `{"$text":"x"}`, `{"$json":{"$text":"x"}}`},
		{"looks like text but is none", `{"$text":1}`, `{"$json":{"$text":1}}`},
		{"looks like bytes", ` {"$bytes":[]}`, `{"$json":{"$bytes":[]}}`},
		{"looks like JSON", `{"$json":{"$json":1}}`, `{"$json":{"$json":{"$json":1}}}`},
		{"said twice", `{"$text":"a","$text":"b"}`, `{"$json":{"$text":"a","$text":"b"}}`},
		{"two keys are no form", `{"$text":"x","y":1}`, `{"$text":"x","y":1}`},
		{"another dollar", `{"$ref":"x"}`, `{"$ref":"x"}`},
		{"too deep for a body", deep, `{"$text":"` + deep + `"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := json.Marshal(schemas.Payload(tt.payload))
			if err != nil {
				t.Fatal(err)
			}
			if string(b) != tt.want {
				t.Fatalf("got %s, want %s", b, tt.want)
			}
			var got schemas.Payload
			if err := json.Unmarshal(b, &got); err != nil {
				t.Fatal(err)
			}
			if string(got) != strings.TrimSpace(tt.payload) && string(got) != tt.payload {
				t.Fatalf("came back as %s", got)
			}
		})
	}
}

func TestPayloadJSONOfNothing(t *testing.T) {
	for _, p := range []schemas.Payload{nil, {}, schemas.Text("null")} {
		b, err := json.Marshal(p)
		if err != nil || string(b) != "null" {
			t.Fatalf("%q: got %s, %v; want null", p, b, err)
		}
	}
	p := schemas.Text("old")
	if err := p.UnmarshalJSON([]byte(" null ")); err != nil || p != nil {
		t.Fatalf("got %q, %v; want nil", p, err)
	}
}

func TestPayloadJSONRefuses(t *testing.T) {
	for _, in := range []string{`{"$text":1}`, `{"$bytes":"%%%"}`, `{"$bytes":7}`} {
		var p schemas.Payload
		if err := json.Unmarshal([]byte(in), &p); err == nil || !strings.Contains(err.Error(), "payload $") {
			t.Errorf("%s: got %q, %v; want an error that names the form", in, p, err)
		}
	}
}

func TestPayloadRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := schemas.Payload(rapid.OneOf(
			rapid.SliceOfN(rapid.Byte(), 1, -1), rapid.Map(rapid.String(), func(s string) []byte { return []byte(s + "x") }),
			rapid.Map(anyValue(3, true), func(v any) []byte { b, _ := json.Marshal(v); return b }),
			rapid.Map(rapid.SampledFrom([]string{"$text", "$json", "$bytes", "$ref"}), func(k string) []byte { return []byte(`{"` + k + `":"AA=="}`) }),
			rapid.Map(rapid.Int64Min(1), func(n int64) []byte {
				return schemas.RefPayload(&schemas.PayloadRef{Object: "o", Size: n, Digest: strings.Repeat("0", 64)})
			}),
		).Draw(t, "payload"))
		if string(p) == "null" {
			return
		}
		checkPayload(t, p)
	})
}

// checkPayload sends p through both encodings, inside a message.
func checkPayload(t interface{ Fatalf(string, ...any) }, p schemas.Payload) {
	for _, enc := range encodings {
		b, err := enc.marshal(&schemas.Heartbeat{Token: "t", Details: p})
		if err != nil {
			t.Fatalf("%s: %q: %v", enc.name, p, err)
		}
		if enc.name == "json" && !utf8.Valid(b) {
			t.Fatalf("the JSON of %q is not UTF-8: %q", p, b)
		}
		var got schemas.Heartbeat
		if err := schemas.Unmarshal(b, &got); err != nil {
			t.Fatalf("%s: %q as %q: %v", enc.name, p, b, err)
		}
		if _, ok := p.Ref(); ok && enc.name == "json" {
			const prefix = "\x00drover-ref\x00"
			if !bytes.Equal(canonical(bytes.TrimPrefix(got.Details, []byte(prefix))), canonical(bytes.TrimPrefix(p, []byte(prefix)))) {
				t.Fatalf("got %q, want the same reference as %q", got.Details, p)
			}
		} else if enc.name == "json" && json.Valid(p) {
			if !bytes.Equal(canonical(got.Details), canonical(p)) {
				t.Fatalf("got %q, want the same JSON as %q", got.Details, p)
			}
		} else if !bytes.Equal(got.Details, p) {
			t.Fatalf("%s: got %q, want %q", enc.name, got.Details, p)
		}
	}
}

// canonical is JSON with no white space and all escapes.
func canonical(b []byte) []byte {
	var compact, escaped bytes.Buffer
	if json.Compact(&compact, b) != nil {
		return nil
	}
	json.HTMLEscape(&escaped, compact.Bytes())
	return escaped.Bytes()
}

func TestPayloadDecode(t *testing.T) {
	p, err := schemas.JSONPayload(map[string]int{"n": 7})
	if err != nil {
		t.Fatal(err)
	}
	var v struct{ N int }
	if err := p.Decode(&v); err != nil || v.N != 7 {
		t.Fatalf("got %v, %v; want 7", v, err)
	}
	if err := (schemas.Payload{}).Decode(&v); err != nil || v.N != 7 {
		t.Fatalf("empty: got %v, %v; want it left alone", v, err)
	}
	if err := schemas.Text("plain").Decode(&v); err == nil || !strings.Contains(err.Error(), "expected JSON") {
		t.Fatalf("got %v, want an error", err)
	}
	if _, err := schemas.JSONPayload(func() {}); err == nil {
		t.Fatal("a function has no JSON")
	}
}

// Texts go a short way where they stand in JSON as they are, with the same outcome as by encoding/json.
func TestPayloadOfAText(t *testing.T) {
	for _, s := range []string{"", "plain", `a "quote"`, `back\slash`, "tab\t", "line\n", "ä", "\xff", "\u2028", "<b>&amp;</b>", "\x7f", "null", "7"} {
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		p, err := schemas.JSONPayload(s)
		if err != nil || string(p) != string(want) {
			t.Errorf("%q: got %s, %v; want %s", s, p, err, want)
		}
	}
	for _, p := range []string{`""`, `"plain"`, ` "space" `, `"a\"b"`, `"\u00e4"`, "\"\xff\"", `"<b>"`, `"`, `"a"b"`, `"a\"`, "\"a\nb\"", `7`, `null`, `"a" x`} {
		got, want := "before", "before"
		err, wanted := schemas.Payload(p).Decode(&got), json.Unmarshal([]byte(p), &want)
		if got != want || (err == nil) != (wanted == nil) {
			t.Errorf("%s: got %q, %v; want %q, %v", p, got, err, want, wanted)
		}
	}
	if err := schemas.Text(`"a"`).Decode((*string)(nil)); err == nil {
		t.Error("decoded into nothing")
	}
}
