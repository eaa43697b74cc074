package bufpool_test

import (
	"bytes"
	"testing"

	"github.com/droverhq/drover/internal/bufpool"
)

// What was kept stays as it is, whoever uses the buffer next, and has no more memory than it needs.
func TestBodiesAreTheirOwn(t *testing.T) {
	var kept [][]byte
	for n := range 200 {
		r := bufpool.Get()
		body := append(r.Bytes(), bytes.Repeat([]byte{byte(n)}, n*n)...) // up to 39 KB, and 0
		kept = append(kept, r.Keep(body))
		r.Put()
	}
	large := bufpool.Get()
	kept = append(kept, large.Keep(append(large.Bytes(), bytes.Repeat([]byte{200}, 200*200*10)...)))
	large.Put()
	again := bufpool.Get()
	_ = again.Keep(append(again.Bytes(), "other"...))
	again.Put()
	for n, body := range kept {
		want := n * n
		if n == 200 {
			want *= 10
		}
		if len(body) != want || bytes.Count(body, []byte{byte(n)}) != want {
			t.Errorf("body %d has %d bytes, want %d of its own", n, len(body), want)
		}
	}
}
