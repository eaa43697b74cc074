package broker

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// Orphans come back in their order once the inbox has been read up to where it ended when they came, but for those whose run has begun. (E8)
func TestOrphans(t *testing.T) { // P-12
	o := &orphans{}
	var got []string
	pop := func(at uint64) string {
		got = got[:0]
		for e := o.pop(at); e != nil; e = o.pop(at) {
			got = append(got, e.wid+e.subject)
		}
		return strings.Join(got, " ")
	}
	add := func(wid, name string) { o.add(&message{wid: wid, subject: name}) }
	add("a", "1")
	add("b", "2")
	o.know(o.next, 10)
	add("a", "3")
	add("c", "4")
	if got := pop(10); got != "a1 b2" {
		t.Errorf("the inbox is read up to 10: %q, want those that came before that was its end", got)
	}
	add("b", "5")
	o.know(o.next, 20)
	add("d", "6")
	if got := pop(19); got != "" {
		t.Errorf("the inbox is read up to 19: %q, want none", got)
	}
	if all := o.take("a"); len(all) != 1 || all[0].subject != "3" {
		t.Errorf("a has %d, want its third", len(all))
	}
	if all := o.take("b"); len(all) != 1 || all[0].subject != "5" {
		t.Errorf("b has %d, want its fifth", len(all))
	}
	if got := pop(20); got != "c4" {
		t.Errorf("the inbox is read up to 20: %q, want c4", got)
	}
	o.know(o.next, 20) // nothing has come meanwhile
	if got := pop(20); got != "d6" || len(o.of) != 0 || len(o.queue) != 0 {
		t.Errorf("the end has not moved: %q, and %d ids are left; want d6, and none", got, len(o.of))
	}
}

// However many orphans wait, a message of the inbox, another orphan, and a run that begins cost the same. (E8)
func TestOrphansCostTheSame(t *testing.T) {
	const many = 20_000
	p := &partition{}
	p.intakes = [2]*intake{{}, {}}
	p.orphans.polling = true // nobody answers
	for i := range many {
		e := &message{wid: fmt.Sprint("w", i), log: signalLog}
		p.orphan(e)
	}
	p.orphans.know(many, many+1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range many {
		p.intakes[inboxLog].at = uint64(i)
		p.adopt()
		p.orphan(&message{wid: "o", log: signalLog})
		p.takeOrphans(fmt.Sprint("w", i))
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / many; each > 4096 {
		t.Errorf("%d bytes are allocated for each, while %d wait", each, many)
	}
}

// A signal that waits for the end of the inbox keeps what it has of its log's allowance, and no more than that is read. (E8)
func TestOrphansAreBounded(t *testing.T) {
	p := &partition{b: &Broker{}, runs: map[string]*run{"o": {wid: "o"}}}
	p.intakes = [2]*intake{{log: inboxLog}, {log: signalLog}}
	p.orphans.polling = true // nobody answers
	p.b.recordLimit.Store(1 << 30)
	in := p.intakes[signalLog]
	signal := func(seq uint64, size int) bool {
		body := make([]byte, size)
		if in.allowance.try(len(body)) != nil {
			return false
		}
		e := &message{wid: "o", at: schemas.Timestamp(seq), event: execution.Signal{Name: "s", Input: body}, log: signalLog, body: body, allowed: &in.allowance}
		p.intake(in, &opened{message: e, seq: seq})
		return true
	}
	n := uint64(1)
	for ; n < 10*allowedMessages && signal(n, 1); n++ {
	}
	if len(p.orphans.queue) != int(n)-1 || n > allowedMessages+1 {
		t.Errorf("%d wait of %d that were read, want all, and %d", len(p.orphans.queue), n-1, allowedMessages)
	}
	for _, e := range p.takeOrphans("o") {
		e.judged()
		e.judged()
	}
	for n = 1; n < 10*allowedMessages && signal(n, allowedBytes/8); n++ {
	}
	if n != 9 {
		t.Errorf("%d large ones were read, want 8", n-1)
	}
	for _, e := range p.takeOrphans("o") {
		e.judged()
	}
	if !signal(n, allowedBytes+1) {
		t.Error("one that is larger than all that is allowed is never read")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if in.allowance.take(ended, 1) {
		t.Error("one more was read")
	}
	took := make(chan bool)
	go func() { took <- in.allowance.take(t.Context(), 1) }()
	p.takeOrphans("o")[0].judged()
	if !<-took {
		t.Error("none is read when there is room again")
	}
}
