package intake

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// Early signals come back in their order once the inbox has been read up to where it ended when
// they came, but for those whose run has begun. (E8)
func TestOrphans(t *testing.T) { // P-12
	o := &Early[string]{}
	pop := func(at uint64) string {
		var got []string
		for m, ok := o.Pop(at); ok; m, ok = o.Pop(at) {
			got = append(got, m)
		}
		return strings.Join(got, " ")
	}
	ask := func() uint64 {
		before, ok := o.Ask()
		if !ok {
			t.Fatal("the end of the inbox need not be asked for")
		}
		if _, again := o.Ask(); again {
			t.Fatal("it is asked for twice")
		}
		return before
	}
	add := func(wid, number string) { o.Add(wid, wid+number) }
	add("a", "1")
	add("b", "2")
	first := ask()
	add("a", "3")
	add("c", "4")
	o.Know(first, 10)
	if got := pop(10); got != "a1 b2" {
		t.Errorf("the inbox is read up to 10: %q, want those that came before that was its end", got)
	}
	add("b", "5")
	ask()
	o.Failed()
	o.Know(ask(), 20)
	add("d", "6")
	if got := pop(19); got != "" {
		t.Errorf("the inbox is read up to 19: %q, want none", got)
	}
	if all := o.Take("a"); len(all) != 1 || all[0] != "a3" {
		t.Errorf("a has %v, want its third", all)
	}
	if all := o.Take("b"); len(all) != 1 || all[0] != "b5" {
		t.Errorf("b has %v, want its fifth", all)
	}
	if got := pop(20); got != "c4" {
		t.Errorf("the inbox is read up to 20: %q, want c4", got)
	}
	o.Know(ask(), 20) // nothing has come meanwhile
	if got := pop(20); got != "d6" || len(o.of) != 0 || o.Len() != 0 {
		t.Errorf("the end has not moved: %q, and %d ids are left; want d6, and none", got, len(o.of))
	}
	if _, ok := o.Ask(); ok {
		t.Error("the end of the inbox is asked for, and nobody waits for it")
	}
}

// However many wait, a message of the inbox, another early signal, and a run that begins cost the
// same. (E8)
func TestOrphansCostTheSame(t *testing.T) {
	const many = 20_000
	o := &Early[int]{}
	for i := range many {
		o.Add(fmt.Sprint("w", i), i)
	}
	o.Know(many, many+1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range many {
		o.Pop(uint64(i))
		o.Add("o", i)
		o.Take(fmt.Sprint("w", i))
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / many; each > 4096 {
		t.Errorf("%d bytes are allocated for each, while %d wait", each, many)
	}
}
