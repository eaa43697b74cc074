package cli

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func TestYAML(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"b":1,"a":[1,"x",{"y":[]}],"c":{}}`, "b: 1\na:\n  - 1\n  - x\n  - \"y\": []\nc: {}\n"},
		{`{"n":9223372036854775807,"u":18446744073709551615,"f":0.5,"t":true,"z":null}`, "\"n\": 9223372036854775807\nu: 18446744073709551615\nf: 0.5\nt: true\nz: null\n"},
		{`["yes","On","12:30:45","1e3","0x1f","017",".inf","null","~","2026-01-02","","<<","="]`, `- "yes"
- "On"
- "12:30:45"
- "1e3"
- "0x1f"
- "017"
- ".inf"
- "null"
- "~"
- "2026-01-02"
- ""
- "<<"
- "="
`},
		{`["\u001b[31m","a\u0000b","---","line 1\nline 2\n"]`, "- \"\\e[31m\"\n- \"a\\0b\"\n- '---'\n- |\n  line 1\n  line 2\n"},
		{`"x"`, "x\n"},
		{`null`, "null\n"},
	} {
		var b bytes.Buffer
		if err := writeYAML(&b, json.RawMessage(tt.in)); err != nil {
			t.Fatalf("%s: %v", tt.in, err)
		}
		if diff := cmp.Diff(tt.want, b.String()); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", tt.in, diff)
		}
	}
}

// Whatever JSON there is, its YAML reads as the same, and holds nothing that moves a terminal's cursor.
func FuzzYAML(f *testing.F) {
	for _, s := range []string{`{"a":[1,null,true,"x",{"b":-0.5e-3}]}`, `"\ud83d\ude00 \u0085\u2028\ufeff"`, `["- a","a: b # c"," x ","\ta","a\r\nb","%","@","&a","*a","!a","|",">\n a"]`, `{"":{"":""}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want any
		if json.Unmarshal([]byte(s), &want) != nil {
			return
		}
		var b bytes.Buffer
		if err := writeYAML(&b, want); err != nil {
			t.Fatal(err)
		}
		if i := bytes.IndexFunc(b.Bytes(), func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 }); i >= 0 {
			t.Fatalf("%q: got a control character in %q", s, b.Bytes())
		}
		var got any
		if err := yaml.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("%q: %q cannot be read: %v", s, b.Bytes(), err)
		}
		// Numbers by way of JSON, which knows one kind.
		back, err := json.Marshal(got)
		if err != nil {
			t.Fatalf("%q: %q became %#v: %v", s, b.Bytes(), got, err)
		}
		var again any
		if err := json.Unmarshal(back, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, again); diff != "" {
			t.Fatalf("%q: %q (-want +got):\n%s", s, b.Bytes(), diff)
		}
	})
}
