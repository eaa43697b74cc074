package audit

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/internal/safecall"
)

// fullShare bounds the share of time that full passes take: one that takes a minute is followed by
// the next 20 minutes later at the earliest, whether it came to its end or not.
const fullShare = 20

// Run looks again and again until ctx ends, and returns nil: a cheap pass every minute and a full
// one every ten, or less often if it takes long, the first of them a minute after it begins. It
// logs each finding once when it comes and once when it is gone.
func (a *Auditor) Run(ctx context.Context) error {
	tick := time.NewTicker(a.o.CheapEvery)
	defer tick.Stop()
	var nextFull time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		full, began := !time.Now().Before(nextFull), time.Now()
		r, err := a.Pass(ctx, full)
		if full {
			nextFull = time.Now().Add(untilFull(time.Since(began), a.o.FullEvery, err))
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			a.o.Logger.WithField("err", err).Warn("the audit could not look; it will look again")
			continue
		}
		a.tell(r)
		safecall.Tell(a.o.Logger, a.o.Observer, r)
	}
}

// untilFull is how long to wait after a full pass that took so long for the next one. One that
// failed is tried again soon.
func untilFull(took, every time.Duration, failed error) time.Duration {
	if failed != nil {
		return fullShare * took
	}
	return max(every, fullShare*took)
}

// ofPlaces are the kinds that a cheap pass finds too.
var ofPlaces = map[Kind]bool{
	KindNoMaster: true, KindPartitionUnowned: true, KindOwnerSilent: true, KindAlarmsUnowned: true,
	KindAlarmsOverdue: true,
	KindBacklog:       true, KindTasksWait: true,
}

// tell logs what is new and what is gone.
func (a *Auditor) tell(r *Report) {
	found := map[string]bool{}
	for _, f := range r.Findings {
		key := f.key()
		found[key] = true
		_, known := a.known[key]
		a.known[key] = f
		if known && !f.Repaired {
			continue
		}
		log := a.log(&f)
		switch {
		case f.Repaired:
			log.Warn("audit: " + f.Text + ": " + f.Done)
		case f.Failed != "":
			log.WithField("err", f.Failed).Warn("audit: " + f.Text + ": the repair failed")
		case f.Severity == Fault, f.Severity == Warning:
			log.Warn("audit: " + f.Text)
		default:
			log.Info("audit: " + f.Text)
		}
	}
	for kind, n := range r.More {
		a.o.Logger.WithField("kind", kind).WithField("more", n).
			Debug("audit: there are more findings of the kind")
	}
	kept := map[Kind]int{}
	for key, f := range a.known {
		if found[key] || !r.looked(&f) {
			continue
		}
		// It is perhaps among those that were only counted. With each pass these may be others, so
		// only some are remembered.
		counted := r.More[f.Kind] > 0
		if counted && kept[f.Kind] < a.o.MostOfKind {
			kept[f.Kind]++
			continue
		}
		delete(a.known, key)
		if !f.Repaired && !counted {
			a.log(&f).Info("audit: no longer: " + f.Text)
		}
	}
}

func (a *Auditor) log(f *Finding) logrus.FieldLogger {
	log := a.o.Logger.WithField("kind", f.Kind)
	if f.WorkflowID != "" {
		log = log.WithField("workflow", f.WorkflowID).WithField("run", f.Run)
	}
	if f.Partition != nil {
		log = log.WithField("partition", *f.Partition)
	}
	if f.List != "" {
		log = log.WithField("list", f.List)
	}
	return log
}
