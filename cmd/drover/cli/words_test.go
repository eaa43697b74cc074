package cli

import (
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

func TestWords(t *testing.T) {
	for in, want := range map[string]string{
		"": `""`, "abc": "abc", "a b": `"a b"`, "a\nb": `"a\nb"`, "é": "é", "\xff": `"\xff"`, "a=b": `"a=b"`, "\u202eabc": `"\u202eabc"`,
		"0123456789abc": "012345678…",
	} {
		if got := Word(in, 10); got != want {
			t.Fatalf("%q: got %s, want %s", in, got, want)
		}
	}
	for in, want := range map[time.Duration]string{
		0: "0.000s", 12 * time.Millisecond: "0.012s", 59999 * time.Millisecond: "59.999s", time.Minute: "1m00.000s",
		61*time.Second + 5*time.Millisecond: "1m01.005s", time.Hour: "1h00m00s", 25 * time.Hour: "1d01h00m", -time.Second: "-1.000s",
	} {
		if got := Span(in); got != want {
			t.Fatalf("%v: got %s, want %s", in, got, want)
		}
	}
	for in, want := range map[int]string{0: "0B", 1023: "1023B", 1536: "1.5KiB", 3 << 20: "3.0MiB"} {
		if got := Size(in); got != want {
			t.Fatalf("%d: got %s, want %s", in, got, want)
		}
	}
	if drover.Unlimited != time.Duration(schemas.Unlimited) {
		t.Fatal("Unlimited of the client is not that of the wire")
	}
}
