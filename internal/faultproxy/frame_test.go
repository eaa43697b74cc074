package faultproxy

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const session = "INFO {\"a\":1}\r\nCONNECT {}\r\nSUB a.* 1\r\nPUB a.b 3\r\nx\r\n\r\nPUB a.c _R.1 0\r\n\r\nHPUB a.d _R.2 5 7\r\nH\r\n\r\nyy\r\n" +
	"MSG a.b 1 3\r\nabc\r\nMSG a.b 1 _R.9 1\r\nz\r\nHMSG _R.2 7 5 5\r\nH\r\n\r\n\r\nPING\r\nPONG\r\n+OK\r\n-ERR 'x y'\r\n"

// Whatever the pieces in which bytes arrive, the frames are the same, and together they are the bytes.
func TestFramesDoNotDependOnPieces(t *testing.T) {
	whole := new(framer).add([]byte(session))
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var f framer
		var got []frame
		var all []byte
		for rest := []byte(session); len(rest) > 0; {
			n := 1 + rng.IntN(min(len(rest), 40))
			got = append(got, f.add(rest[:n])...)
			rest = rest[n:]
		}
		if diff := cmp.Diff(whole, got, cmp.AllowUnexported(frame{})); diff != "" {
			t.Fatalf("frames (-want +got):\n%s", diff)
		}
		for _, fr := range got {
			all = append(all, fr.bytes...)
		}
		if string(all) != session || f.raw {
			t.Fatalf("got %q (raw %v), want %q", all, f.raw, session)
		}
	}
}

func TestFramesKnowMessages(t *testing.T) {
	type message struct{ verb, subject, reply, withoutReply string }
	var got []message
	for _, fr := range new(framer).add([]byte(session)) {
		if fr.subject != "" {
			got = append(got, message{fr.verb, fr.subject, fr.reply, string(fr.withoutReply())})
		}
	}
	want := []message{
		{"PUB", "a.b", "", "PUB a.b 3\r\nx\r\n\r\n"},
		{"PUB", "a.c", "_R.1", "PUB a.c 0\r\n\r\n"},
		{"HPUB", "a.d", "_R.2", "HPUB a.d 5 7\r\nH\r\n\r\nyy\r\n"},
		{"MSG", "a.b", "", "MSG a.b 1 3\r\nabc\r\n"},
		{"MSG", "a.b", "", "MSG a.b 1 _R.9 1\r\nz\r\n"},
		{"HMSG", "_R.2", "", "HMSG _R.2 7 5 5\r\nH\r\n\r\n\r\n"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(message{})); diff != "" {
		t.Fatalf("messages (-want +got):\n%s", diff)
	}
}

// Other protocols pass as they are, from the first byte that shows it.
func TestOtherProtocolsPass(t *testing.T) {
	for name, text := range map[string]string{
		"tls":                  "\x16\x03\x01\x02\x00\x01",
		"a route":              "INFO {}\r\nCONNECT {}\r\nRS+ $G a.b\r\nRMSG $G a 3\r\nabc\r\n",
		"a compressed route":   "INFO {}\r\n\xff\x06\x00\x00S2sTwO",
		"a message with sizes": "PUB a b c d\r\n",
		"a negative size":      "PUB a -1\r\n",
		"blanks":               "   ",
	} {
		t.Run(name, func(t *testing.T) {
			var f framer
			var got []byte
			for _, b := range []byte(text) {
				for _, fr := range f.add([]byte{b}) {
					got = append(got, fr.bytes...)
				}
			}
			if string(got) != text || !f.raw {
				t.Fatalf("got %q (raw %v), want %q", got, f.raw, text)
			}
		})
	}
}

func FuzzFramesLoseNothing(f *testing.F) {
	f.Add([]byte(session), 7)
	f.Add([]byte("RMSG $G a 3\r\nabc\r\n"), 1)
	f.Fuzz(func(t *testing.T, b []byte, piece int) {
		piece = max(1, min(piece, 1000))
		var fr framer
		var got []byte
		for chunk := range slices.Chunk(b, piece) {
			for _, x := range fr.add(chunk) {
				got = append(got, x.bytes...)
			}
		}
		if all := append(got, fr.rest...); !fr.raw && !bytes.Equal(all, b) || fr.raw && !bytes.Equal(got, b) {
			t.Fatalf("got %q and %q left, want %q", got, fr.rest, b)
		}
	})
}
