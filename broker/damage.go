package broker

import (
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/schemas"
)

// errDamaged says that a history has a gap, a record that cannot be read, or one that does not follow the one before it.
// Such a run does not go on: whatever was added to it would follow from something that did not happen.
var (
	errDamaged = errors.New("the history is damaged")
	// errLater is errDamaged where a later version may have written what this one cannot read.
	errLater = fmt.Errorf("%w, or of a later version of Drover", errDamaged)
)

// damagedBy is what an error of decoding says of the history.
func damagedBy(err error) error {
	if errors.Is(err, schemas.ErrVersion) {
		return errLater
	}
	return errDamaged
}

const (
	// damagedTries is how often a damaged history is read again at once: a replica may be behind.
	damagedTries = 25
	// damagedRetry is how often it is looked at after that. It does not heal by itself, but an operator may restore it.
	damagedRetry = time.Minute
)

// unloaded is called when a run could not be loaded.
func (p *partition) unloaded(r *run, err error) {
	log := p.log.WithError(err).WithField("workflow", r.wid)
	r.tries++
	if !errors.Is(err, errDamaged) || r.tries < damagedTries {
		if r.tries == 1 || r.tries%damagedTries == 0 {
			log.Warn("a run cannot be loaded; trying again")
		}
		p.loop.after(loadRetry, func() { p.load(r) })
		return
	}
	if r.broken == nil {
		log.Error("the history of a workflow is damaged: it does not go on, and its messages wait; drover verify says more")
	}
	r.broken = err
	p.calledBack(r)
	for _, refuse := range r.refused {
		refuse()
	}
	r.refused = nil
	p.loop.after(damagedRetry, func() { p.load(r) })
}

// sound is called when a run could be loaded.
func (p *partition) sound(r *run) {
	if r.broken != nil {
		p.log.WithField("workflow", r.wid).Info("the history of a workflow can be read again")
	}
	r.tries, r.broken, r.refused = 0, nil, nil
}

// whenSound is when for those who want an answer: a run whose history is damaged gives them a refusal.
func (p *partition) whenSound(r *run, reply func(any), f func()) {
	answered := false
	refuse := func() {
		answered = true
		reply(&schemas.AckResponse{V: schemas.Version, Error: damagedError(r)})
	}
	switch {
	case r.broken != nil:
		refuse()
		return
	case r.loading:
		r.refused = append(r.refused, refuse)
	}
	p.when(r, func() {
		if !answered {
			f()
		}
	})
}

func damagedError(r *run) *schemas.Error {
	hint := "keep a copy of the store, see what drover verify says, and restore the history or start the work under another id"
	if errors.Is(r.broken, errLater) {
		hint = "update this server if a later version has been at work; else " + hint
	}
	return schemas.Errorf(schemas.CodeInternal, "workflow %q does not go on: %v", r.wid, r.broken).InField("workflowId").About(r.wid, "").WithHint("%s", hint)
}
