package activity

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
)

// Each list of a worker has subjects that it cannot do without. What others on its connection are refused, also workers of other lists, is theirs.
func TestNeeds(t *testing.T) {
	ns := subject.Namespace("default")
	s := &term{Worker: &Worker{conn: &natsconn.Conn{}, ns: ns, opts: Options{Lists: []string{"PCI", "VISA"}}}, links: links{inbox: "_INBOX.me"}}
	next := func(list, consumer string) string {
		return "$JS.API.CONSUMER.MSG.NEXT." + ns.StreamTasks(list) + "." + consumer
	}
	for _, tc := range []struct {
		refused string
		sub     bool
		list    string
		needed  bool
	}{
		{refused: "_INBOX.me", sub: true, needed: true},
		{refused: "_INBOX.me"},
		{refused: ns.Offer("PCI"), sub: true},
		{refused: ns.ActOutcome(3, "w", "PCI"), list: "PCI", needed: true},
		{refused: ns.ActOutcome(3, "w", "VISA"), list: "VISA", needed: true},
		{refused: ns.ActOutcome(3, "w", "other")},
		{refused: ns.Beat(3, "w", "PCI"), list: "PCI", needed: true},
		{refused: ns.Beat(3, "w", "VISA"), list: "VISA", needed: true},
		{refused: ns.Beat(3, "w", "other")},
		{refused: ns.Outcome(3, "w", "VISA"), list: "VISA", needed: true},
		{refused: ns.Outcome(3, "w", "other")},
		{refused: "$JS.ACK." + ns.StreamTasks("VISA") + ".x", list: "VISA", needed: true},
		{refused: "$JS.ACK." + ns.StreamTasks("other") + ".x"},
		{refused: next("PCI", subject.Consumer), list: "PCI", needed: true},
		{refused: next("PCI", subject.ConsumerHigh)},
		{refused: next("PCI", subject.ConsumerLow)},
		{refused: next("other", subject.Consumer)},
	} {
		e := &natsconn.RefusedError{Subscribe: tc.sub, Subject: tc.refused}
		list, ok := s.needs(e)
		if list != tc.list || ok != tc.needed {
			t.Errorf("%v: got %q, %v, want %q, %v", e, list, ok, tc.list, tc.needed)
		}
		if text := (&refusedError{list, e}).Error(); strings.Contains(text, "worker: list") != (tc.list != "") || !strings.Contains(text, tc.refused) {
			t.Errorf("got %q, want the list, if it is one's, and %s", text, tc.refused)
		}
	}
}
