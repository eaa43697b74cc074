package cli

import (
	"strings"
	"testing"
)

func FuzzParseQuery(f *testing.F) {
	for _, seed := range []string{"status=failed", `type="a b" tag=x`, "closed-after=24h started-before=2026-01-02", `tag="`, "=", "a=b=c", " \n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := ParseQuery(text)
		if err == nil && strings.TrimSpace(text) == "" {
			t.Errorf("an empty query gave %+v", o)
		}
		if err != nil && err.Error() == "" {
			t.Error("an error says nothing")
		}
	})
}
