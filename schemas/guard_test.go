package schemas_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"github.com/droverhq/drover/schemas"
)

// anyValue draws what a map of the user's may hold; with jsonOnly only what JSON has.
func anyValue(depth int, jsonOnly bool) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Int32().AsAny(), rapid.Float64().AsAny(), rapid.String().AsAny(),
	}
	if !jsonOnly {
		leaves = append(leaves, rapid.Uint64().AsAny(), rapid.Float32().AsAny(), rapid.Int8().AsAny(), rapid.Uint16().AsAny(),
			rapid.SliceOfN(rapid.Byte(), 0, 300).AsAny(), rapid.StringN(0, 300, -1).AsAny())
	}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	inner := rapid.Deferred(func() *rapid.Generator[any] { return anyValue(depth-1, jsonOnly) })
	return rapid.OneOf(append(leaves, rapid.SliceOfN(inner, 0, 20).AsAny(), rapid.MapOfN(rapid.String(), inner, 0, 20).AsAny())...)
}

// Scan passes whatever the encoder writes, and nothing that lacks a byte or has one more.
func TestScanAgreesWithTheEncoder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var buf bytes.Buffer
		enc := msgpack.NewEncoder(&buf)
		enc.UseCompactInts(rapid.Bool().Draw(t, "compact"))
		if err := enc.Encode(anyValue(4, false).Draw(t, "value")); err != nil {
			t.Fatal(err)
		}
		b := buf.Bytes()
		if err := schemas.Scan(b); err != nil {
			t.Fatalf("%v: %x", err, b)
		}
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		for _, wrong := range [][]byte{b[:len(b)-1], b[:cut], append(bytes.Clone(b), 0xc0)} {
			if err := schemas.Scan(wrong); !errors.Is(err, schemas.ErrMalformed) {
				t.Fatalf("got %v, want ErrMalformed for %x of %x", err, wrong, b)
			}
		}
	})
}

// walk is Scan written the dumb way: it returns what follows the first value of b.
func walk(b []byte, depth int) (rest []byte, ok bool) {
	if len(b) == 0 || depth > schemas.MaxDepth {
		return nil, false
	}
	c, b := b[0], b[1:]
	skip := func(n uint64) ([]byte, bool) {
		if n > uint64(len(b)) {
			return nil, false
		}
		return b[n:], true
	}
	length := func(size int) (n uint64, ok bool) {
		if len(b) < size {
			return 0, false
		}
		wide := append(make([]byte, 8-size), b[:size]...)
		b = b[size:]
		return binary.BigEndian.Uint64(wide), true
	}
	inside := func(n uint64) ([]byte, bool) {
		for range n {
			if b, ok = walk(b, depth+1); !ok {
				return nil, false
			}
		}
		return b, true
	}
	switch {
	case c <= 0x7f || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3:
		return b, true
	case c <= 0x8f:
		return inside(2 * uint64(c-0x80))
	case c <= 0x9f:
		return inside(uint64(c - 0x90))
	case c <= 0xbf:
		return skip(uint64(c - 0xa0))
	}
	if n, scalar := map[byte]uint64{0xca: 4, 0xcb: 8, 0xcc: 1, 0xcd: 2, 0xce: 4, 0xcf: 8, 0xd0: 1, 0xd1: 2, 0xd2: 4, 0xd3: 8}[c]; scalar {
		return skip(n)
	}
	size, known := map[byte]int{0xc4: 1, 0xc5: 2, 0xc6: 4, 0xd9: 1, 0xda: 2, 0xdb: 4, 0xdc: 2, 0xdd: 4, 0xde: 2, 0xdf: 4}[c]
	n, whole := length(size)
	switch {
	case !known || !whole:
		return nil, false
	case c == 0xdc || c == 0xdd:
		return inside(n)
	case c == 0xde || c == 0xdf:
		return inside(2 * n)
	}
	return skip(n)
}

func checkScan(t *testing.T, b []byte) {
	t.Helper()
	rest, ok := walk(b, 1)
	ok = ok && len(rest) == 0
	err := schemas.Scan(b)
	if (err == nil) != ok {
		t.Fatalf("Scan: %v; read recursively it is valid: %v\n%x", err, ok, b)
	}
	if err != nil {
		if !errors.Is(err, schemas.ErrMalformed) {
			t.Fatalf("got %v, want ErrMalformed", err)
		}
		return
	}
	// The decoder has to agree where the value ends, or it would read on in the wrong place.
	r := bytes.NewReader(b)
	if err := msgpack.NewDecoder(r).Skip(); err != nil || r.Len() != 0 {
		t.Fatalf("the decoder skips it with %v and leaves %d bytes\n%x", err, r.Len(), b)
	}
}

func TestScanAgreesWithARecursiveReader(t *testing.T) {
	heads := rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte{0x81, 0x91, 0x92, 0xa1, 0xc4, 0xd9, 0xdc, 0xdd, 0xde, 0xdf, 0, 0, 0, 0, 1}))
	rapid.Check(t, func(rt *rapid.T) { checkScan(t, rapid.SliceOf(heads).Draw(rt, "bytes")) })
}

func TestScanDepth(t *testing.T) {
	for _, tt := range []struct {
		open  string
		depth int
		ok    bool
	}{
		{"\x91", schemas.MaxDepth - 1, true},
		{"\x91", schemas.MaxDepth, false},
		{"\x91", 1000, false},
		{"\x91", 1 << 20, false},
		{"\x81\xa1a", schemas.MaxDepth - 1, true},
		{"\x81\xa1a", schemas.MaxDepth, false},
		{"\x81\xa1a", 1000, false},
		{"\xdd\x00\x00\x00\x01", schemas.MaxDepth - 1, true},
		{"\xdd\x00\x00\x00\x01", 1000, false},
		{"\xdc\x00\x01", 1000, false},
		{"\xde\x00\x01\xa1a", 1000, false},
		{"\xdf\x00\x00\x00\x01\xa1a", 1000, false},
	} {
		b := []byte(strings.Repeat(tt.open, tt.depth) + "\xc0")
		if err := schemas.Scan(b); (err == nil) != tt.ok {
			t.Errorf("%q × %d: got %v, want ok: %v", tt.open, tt.depth, err, tt.ok)
		}
	}
}

func TestScanAllocatesNothing(t *testing.T) {
	body, err := schemas.Marshal(&schemas.Record{Events: s144()})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _ = schemas.Scan(body[1:]) }); n != 0 {
		t.Fatalf("got %v allocations, want 0", n)
	}
}

// hostile are bodies, without their version byte, that declare more than they hold, or nest without end. Each is a value
// of its own, and also put where a message has a list, a map or a payload.
func hostile() map[string]string {
	bodies := map[string]string{
		"nothing": "", "reserved byte": "\xc1", "two values": "\xc0\xc0", "map without value": "\x81\xa1a",
		"array 1000 deep": strings.Repeat("\x91", 1000) + "\xc0", "map 1000 deep": strings.Repeat("\x81\xa1a", 1000) + "\xc0",
		"array32 1000 deep": strings.Repeat("\xdd\x00\x00\x00\x01", 1000) + "\xc0",
		// To the decoder the content of an extension is the map that it announces.
		"map in an extension":       "\xc7\x05\x01\xdf\xff\xff\xff\xff",
		"map in a fixed extension":  "\xd7\x01\xdf\xff\xff\xff\xff\x00\x00\x00",
		"map in a wide extension":   "\xc9\x00\x00\x00\x05\x01\xdf\xff\xff\xff\xff",
		"map in a middle extension": "\xc8\x00\x05\x01\xdf\x00\x0f\x42\x40",
	}
	for c, size := range map[byte]int{
		0xc4: 1, 0xc5: 2, 0xc6: 4, 0xc7: 1, 0xc8: 2, 0xc9: 4, 0xd9: 1, 0xda: 2, 0xdb: 4, 0xdc: 2, 0xdd: 4, 0xde: 2, 0xdf: 4,
	} {
		name := fmt.Sprintf("%#x", c)
		bodies[name+" huge"] = string([]byte{c}) + strings.Repeat("\xff", size)
		bodies[name+" huge with some content"] = string([]byte{c}) + strings.Repeat("\xff", size) + strings.Repeat("\xc0", 100)
		bodies[name+" without length"] = string([]byte{c}) + strings.Repeat("\xff", size-1)
		bodies[name+" one short"] = string(append(append([]byte{c}, make([]byte, size-1)...), 2)) + "\x01"
	}
	for c := byte(0xca); c <= 0xd8; c++ {
		bodies[fmt.Sprintf("%#x cut", c)] = string([]byte{c})
	}
	for c := byte(0x81); c <= 0xbf; c++ {
		if c&0x0f != 0 && c != 0x90 && c != 0xa0 {
			bodies[fmt.Sprintf("%#x empty", c)] = string([]byte{c})
		}
	}
	return bodies
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// maxAlloc is what decoding a body of n bytes may allocate: an element of one byte can be a struct of a few hundred, and
// a pooled decoder may have to be made.
func maxAlloc(n int) uint64 { return 1<<18 + 1024*uint64(n) }

func TestHostileBodies(t *testing.T) {
	wraps := map[string]string{
		"itself": "", "events": "\x81\xa6events", "attributes": "\x81\xaaattributes", "input": "\x81\xa5input", "unknown field": "\x81\xa2zz",
		"decisions": "\x81\xa9decisions\x91", "attributes of a decision": "\x81\xa9decisions\x91\x82\xa4type\xadSetAttributes\xaaattributes\x81\xaaattributes",
		"an event": "\x81\xa6events\x91", "attributes of an event": "\x81\xa6events\x91\x94\x01\xadAttributesSet\x00\x81\xaaattributes",
		"an unknown event": "\x81\xa6events\x91\x94\x01\xaaLaterEvent\x00", "tags": "\x81\xa7tagList",
	}
	for name, body := range hostile() {
		for where, prefix := range wraps {
			b := append([]byte{schemas.Version}, prefix+body...)
			all := messages()
			n := allocated(func() {
				for _, v := range all {
					if err := schemas.Unmarshal(b, v); !errors.Is(err, schemas.ErrMalformed) {
						t.Fatalf("%s in %s of %T: got %v, want ErrMalformed", name, where, v, err)
					}
				}
			})
			if n > maxAlloc(len(all)*len(b)) {
				t.Fatalf("%s in %s: %d bytes allocated for %d times %d", name, where, n, len(all), len(b))
			}
		}
	}
}

// Every proper prefix of every message is refused, whatever it was cut in.
func TestTruncatedBodies(t *testing.T) {
	for name, v := range everything(t) {
		b, err := schemas.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got := reflect.New(reflect.TypeOf(v).Elem()).Interface()
		for n := 1; n < len(b); n++ {
			if err := schemas.Unmarshal(b[:n], got); !errors.Is(err, schemas.ErrMalformed) {
				t.Fatalf("%s cut at %d of %d: got %v, want ErrMalformed", name, n, len(b), err)
			}
		}
	}
}
