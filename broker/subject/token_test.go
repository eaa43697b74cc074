package subject_test

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/broker/subject"
)

func TestToken(t *testing.T) {
	for _, tt := range []struct{ name, id, want string }{
		{"plain", "order-17", "order-17"},
		{"all plain signs", "aZ09_-=~@:", "aZ09_-=~@:"},
		{"dot", "a.b", "a%2Eb"},
		{"star", "*", "%2A"},
		{"gt", ">", "%3E"},
		{"space", "a b", "a%20b"},
		{"percent", "100%", "100%25"},
		{"looks escaped", "%2E", "%252E"},
		{"slash", "eu/order", "eu%2Forder"},
		{"unicode", "é", "%C3%A9"},
		{"emoji", "🐂", "%F0%9F%90%82"},
		{"empty", "", ""},
		{"newline", "\n", "%0A"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := subject.Token(tt.id); got != tt.want {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Bad input: ids. None of these may enter the system.
func TestValidateIDRefuses(t *testing.T) {
	for _, tt := range []struct{ name, id, hint string }{
		{"empty", "", "order id is empty"},
		{"300 bytes", strings.Repeat("x", 300), "has 300 bytes"},
		{"257 bytes of two-byte runes", strings.Repeat("é", 128) + "x", "has 257 bytes"},
		{"CR", "a\rb", "U+000D at byte 1"},
		{"LF", "a\nb", "U+000A at byte 1"},
		{"CRLF PUB", "a\r\nPUB x 0\r\n", "U+000D at byte 1"},
		{"NUL", "\x00", "U+0000 at byte 0"},
		{"tab", "a\t", "U+0009 at byte 1"},
		{"DEL", "\x7f", "U+007F at byte 0"},
		{"C1", "a\u0085", "U+0085 at byte 1"},
		{"lone continuation byte", "a\x80", "0x80 at 1"},
		{"overlong dot", "\xc0\xae", "0xc0 at 0"},
		{"surrogate", "\xed\xa0\x80", "0xed at 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := subject.ValidateID("order id", tt.id)
			if !errors.Is(err, subject.ErrInvalidID) {
				t.Fatalf("got %v, want ErrInvalidID", err)
			}
			for _, want := range []string{"order id", tt.hint, "1 to 256 bytes"} {
				if !strings.Contains(err.Error(), want) {
					t.Fatalf("got %q, want it to hold %q", err, want)
				}
			}
			if _, err := subject.ParseToken(subject.Token(tt.id)); !errors.Is(err, subject.ErrInvalidID) {
				t.Fatalf("ParseToken: got %v, want ErrInvalidID", err)
			}
		})
	}
}

func TestValidateIDAccepts(t *testing.T) {
	for _, id := range []string{
		".", "*", ">", "a.b.>", " ", "%", "%2E", "$JS.API", "naïve", "日本語", "\ufffd", "\u200b",
		strings.Repeat("x", 256), strings.Repeat("é", 128), "a\\b", `"quoted"`, "../../etc",
	} {
		if err := subject.ValidateID("id", id); err != nil {
			t.Fatalf("%q: got %v, want nil", id, err)
		}
		if got, err := subject.ParseToken(subject.Token(id)); err != nil || got != id {
			t.Fatalf("%q: got %q, %v, want it back", id, got, err)
		}
	}
}

// Bad input: ids. Tokens that Token never writes are refused, so that ids and tokens are one to one.
func TestParseTokenRefuses(t *testing.T) {
	for _, tok := range []string{
		"", "a.b", "*", ">", "a b", "é", "%", "%2", "%2e", "%G0", "%41", "a%2", "%%25", "%0A", "%00", "%C3", "a\n", "%3a",
		strings.Repeat("x", 257),
	} {
		if got, err := subject.ParseToken(tok); !errors.Is(err, subject.ErrInvalidID) {
			t.Fatalf("%q: got %q, %v, want ErrInvalidID", tok, got, err)
		}
	}
}

func TestValidateName(t *testing.T) {
	for _, ok := range []string{"default", "PCI", "a", "A-b_9", strings.Repeat("n", 64)} {
		if err := subject.ValidateName("list", ok); err != nil {
			t.Fatalf("%q: got %v, want nil", ok, err)
		}
	}
	for _, bad := range []string{"", ".", "*", ">", "a.b", "a b", "é", "a%", "a\n", "a/b", "a:b", strings.Repeat("n", 65)} {
		err := subject.ValidateName("list", bad)
		if !errors.Is(err, subject.ErrInvalidID) || !strings.Contains(err.Error(), "list") {
			t.Fatalf("%q: got %v, want ErrInvalidID that names the list", bad, err)
		}
	}
}

func TestValidateNamespace(t *testing.T) {
	for name, ok := range map[string]bool{"default": true, "my-tasks": true, "tasks-a": true, "a-tasks-b": false, "a b": false, "": false} {
		err := subject.ValidateNamespace(name)
		if ok != (err == nil) || (!ok && !errors.Is(err, subject.ErrInvalidID)) {
			t.Fatalf("%q: got %v, want ok=%v", name, err, ok)
		}
	}
}

// Bad input: ids. Any valid id makes one clean token and comes back; two ids make two tokens.
func TestTokenProperties(t *testing.T) {
	genID := rapid.Custom(func(t *rapid.T) string {
		id := rapid.StringOfN(rapid.RuneFrom([]rune{'.', '*', '>', ' ', '%', '2', 'E', 'a', 'é', '🐂'}, unicode.L, unicode.P), 1, 64, 256).Draw(t, "id")
		return id
	}).Filter(func(s string) bool { return subject.ValidateID("id", s) == nil })
	rapid.Check(t, func(t *rapid.T) {
		a, b := genID.Draw(t, "a"), genID.Draw(t, "b")
		ta, tb := subject.Token(a), subject.Token(b)
		if (a == b) != (ta == tb) {
			t.Fatalf("ids %q, %q: tokens %q, %q", a, b, ta, tb)
		}
		if strings.ContainsAny(ta, ".*> \t\r\n\x00") || ta == "" {
			t.Fatalf("id %q: token %q", a, ta)
		}
		if got, err := subject.ParseToken(ta); err != nil || got != a {
			t.Fatalf("got %q, %v, want %q", got, err, a)
		}
	})
}

func FuzzToken(f *testing.F) {
	for _, s := range []string{"", "a", "a.b", "%2E", ">", "\xff", "日本", "\r\n", strings.Repeat(".", 256)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		tok := subject.Token(id)
		if strings.ContainsAny(tok, ".*> \t\r\n\x00") || !utf8.ValidString(tok) {
			t.Fatalf("id %q: token %q", id, tok)
		}
		got, err := subject.ParseToken(tok)
		if valid := subject.ValidateID("id", id); (valid == nil) != (err == nil) {
			t.Fatalf("id %q: ValidateID %v, ParseToken %v", id, valid, err)
		}
		if err == nil && got != id {
			t.Fatalf("got %q, want %q", got, id)
		}
	})
}

func FuzzParseToken(f *testing.F) {
	for _, s := range []string{"", "a", "a%2Eb", "%2e", "%41", "%", "%C3%A9", "%C3", "a.b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, tok string) {
		id, err := subject.ParseToken(tok)
		if err != nil {
			return
		}
		if got := subject.Token(id); got != tok {
			t.Fatalf("token %q means id %q, which is written %q", tok, id, got)
		}
		if err := subject.ValidateID("id", id); err != nil {
			t.Fatalf("token %q gave an invalid id: %v", tok, err)
		}
	})
}
