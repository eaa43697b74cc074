package metrics

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/broker/stats"
	"github.com/droverhq/drover/internal/tally"
)

// other is the label of what is not told apart.
const other = "other"

func named(label string, isOther bool) string {
	if isOther {
		return other
	}
	return label
}

// namespace shows a namespace.
func (c *collection) namespace(n *Namespace) {
	s := &n.stats
	c.runs(n.name, s)
	c.activities(n.name, s)
	c.put(signals, float64(s.Signals.Load()), n.name, "taken")
	c.put(signals, float64(s.SignalsDead.Load()), n.name, "dead")
	c.times(lockWait, &s.LockWait, n.name)
	c.times(scheduleLate, &s.SlotLate, n.name)
	c.api(n.name, s)
	c.partitions(n.name, s)
	c.commits(n.name, &s.Commits)
	c.alarms(n.name, &s.Alarms)
	c.care(n)
	c.index(n)
	c.readings(n)
	c.put(overflow, float64(s.Overflow()), n.name)
}

func (c *collection) runs(ns string, s *stats.Stats) {
	s.Types.Each(func(typ string, isOther bool, t *stats.Type) {
		typ = named(typ, isOther)
		c.put(runsStarted, float64(t.Started.Load()), ns, typ)
		for i, status := range stats.Statuses {
			c.put(runsClosed, float64(t.Closed[i].Load()), ns, typ, string(status))
		}
		c.times(runDuration, &t.Took, ns, typ)
		for i, outcome := range stats.DecisionOutcomes {
			c.put(decisions, float64(t.Decisions[i].Load()), ns, typ, outcome)
		}
		c.times(decisionWait, &t.Wait, ns, typ)
		c.times(decisionDuration, &t.Deciding, ns, typ)
	})
}

func (c *collection) activities(ns string, s *stats.Stats) {
	s.Activities.Each(func(of stats.ListType, isOther bool, a *stats.Activity) {
		list, typ := named(of.List, isOther), named(of.Type, isOther)
		for i, outcome := range stats.ActivityOutcomes {
			c.put(activities, float64(a.Outcomes[i].Load()), ns, list, typ, outcome)
		}
		c.times(activityWait, &a.Wait, ns, list, typ)
		c.times(activityDuration, &a.Took, ns, list, typ)
		c.put(activityRetries, float64(a.Retries.Load()), ns, list, typ)
		c.put(activitiesInterrupted, float64(a.Interrupted.Load()), ns, list, typ)
	})
}

func (c *collection) api(ns string, s *stats.Stats) {
	s.Requests.Each(func(of stats.VerbCode, isOther bool, n *atomic.Int64) {
		c.put(apiRequests, float64(n.Load()), ns, named(of.Verb, isOther), named(of.Code, isOther))
	})
	s.Answers.Each(func(verb string, isOther bool, h *tally.Histogram) {
		c.times(apiDuration, h, ns, named(verb, isOther))
	})
}

func (c *collection) partitions(ns string, s *stats.Stats) {
	for _, p := range s.Owned() {
		n := strconv.Itoa(p.Number)
		c.put(partitionOwned, 1, ns, n)
		c.put(inboxLag, float64(p.InboxLag.Load()), ns, n)
		age := 0.0
		if since := p.InboxSince.Load(); since > 0 {
			age = max(time.Since(time.Unix(0, since)), 0).Seconds()
		}
		c.put(inboxLagSeconds, age, ns, n)
		c.put(effectsBehind, float64(p.Behind.Load()), ns, n)
	}
	for i, why := range stats.TakeoverNames {
		c.put(takeovers, float64(s.Takeovers[i].Load()), ns, why)
	}
	c.times(takeoverDuration, &s.TakeOver, ns)
}

func (c *collection) commits(ns string, s *stats.Commits) {
	c.times(commitDuration, &s.Took, ns)
	c.put(commitRecords, float64(s.Records.Load()), ns)
	c.put(commitEvents, float64(s.Events.Load()), ns)
	c.put(commitBytes, float64(s.Bytes.Load()), ns)
	for i, code := range stats.Refusals {
		c.put(commitRefused, float64(s.Refused[i].Load()), ns, code)
	}
}

func (c *collection) alarms(ns string, s *stats.Alarms) {
	ringing := map[int]int{} // a former term may not have ended yet
	for _, r := range s.Ringing() {
		ringing[r.Partition] = max(ringing[r.Partition], r.Pending())
	}
	for p, n := range ringing {
		c.put(alarmsPending, float64(n), ns, strconv.Itoa(p))
	}
	c.times(alarmLate, &s.Late, ns)
	c.put(timerClaims, float64(len(ringing)), ns)
}

func (c *collection) care(n *Namespace) {
	n.stats.Dead.Each(func(reason string, isOther bool, letters *atomic.Int64) {
		c.put(deadLetters, float64(letters.Load()), n.name, named(reason, isOther))
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	held, lost := map[string]int(nil), int64(0)
	if n.claims != nil {
		held, lost = n.claims.Stats()
	}
	for kind, claims := range held {
		c.put(claimsHeld, float64(claims), n.name, kind)
	}
	c.put(claimsLost, float64(n.lost+lost), n.name)
	c.put(partitions, float64(n.partitions), n.name)
	leads := 0.0
	if n.master != nil && n.master() {
		leads = 1
	}
	c.put(isMaster, leads, n.name)
	c.put(purged, float64(n.purged), n.name)
}

func (c *collection) index(n *Namespace) {
	n.mu.Lock()
	stands := n.index
	n.mu.Unlock()
	if stands == nil {
		return
	}
	of := stands()
	c.put(indexRows, float64(of.Rows), n.name)
	c.put(indexBytes, float64(of.Bytes), n.name)
	building := 1.0
	if of.Whole {
		building = 0
	}
	c.put(indexBuilding, building, n.name)
}
