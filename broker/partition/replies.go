package partition

import (
	"strconv"
	"strings"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/decisions"
	"github.com/droverhq/drover/broker/partition/dispatch"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/probes"
	"github.com/droverhq/drover/schemas"
)

// answered receives everything that comes back to our reply subjects, on the connection's
// goroutine.
func (p *Partition) answered(m natsconn.Msg) {
	key := strings.TrimPrefix(m.Subject, p.inputs.replies)
	if id, marker := strings.CutPrefix(key, env.MarkerPrefix+"."); marker {
		n, err := strconv.ParseUint(id, 36, 64)
		if err == nil {
			p.Loop.Post(func() { p.decisions.Marked(n) })
		}
		return
	}
	if _, ok := m.FromStream(); ok {
		return // somebody keeps what deciders and workers are asked; these answer after it
	}
	nobody := m.NobodyListens()
	if !nobody && natsconn.Given(m.Reply, m.Header) != "" {
		return // workers know these subjects, and may name them for what the server gives out
	}
	if id, forward := strings.CutPrefix(key, decisions.PassedPrefix+"."); forward {
		n, err := strconv.ParseUint(id, 36, 64)
		if err == nil && !nobody {
			p.Loop.Post(func() { p.decisions.Passed(n) })
		}
		return
	}
	if id, offer := strings.CutPrefix(key, dispatch.OfferPrefix+"."); offer {
		n, err := strconv.ParseUint(id, 36, 64)
		if err == nil {
			p.Loop.Post(func() { p.dispatch.Refused(n, nobody) })
		}
		return
	}
	if id, call := strings.CutPrefix(key, probes.Prefix+"."); call {
		n, err := strconv.ParseUint(id, 36, 64)
		if err == nil && nobody {
			p.Loop.Post(
				func() { p.Loop.After(probes.LeaveTaking, func() { p.probes.WorkerGone(n) }) })
		}
		return
	}
	if former, probe := strings.CutPrefix(key, decisions.ProbePrefix+"."); probe {
		if nobody {
			p.Loop.Post(func() { p.decisions.FormerGone(former) })
		}
		return
	}
	id, err := strconv.ParseUint(key, 36, 64)
	if err != nil {
		return
	}
	if nobody {
		p.Loop.Post(func() { p.decisions.Nobody(id) })
		return
	}
	reply := &schemas.DecisionReply{}
	err = env.DecodeSent(m.Header, m.Data, reply)
	p.Loop.Post(func() { p.decisions.Replied(id, reply, m, err) })
}
