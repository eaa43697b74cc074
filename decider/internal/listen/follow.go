package listen

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
)

// Source brings types that come and go.
type Source struct {
	// Run calls serve with all types of the source, at first and whenever they change, until ctx is
	// done. If it ends earlier, so does the listening.
	Run    func(ctx context.Context, serve func(types []string)) error
	Handle Handler
}

// guests are the types of a Run that come and go.
type guests struct {
	l      *Listener
	ctx    context.Context // of the listening; the sources end with it
	fixed  map[string]Handler
	unhook func()
	wg     sync.WaitGroup // sources, and subscriptions that are on their way out

	mu      sync.Mutex
	served  map[string]*guest
	refused map[string]bool // types that this user may not listen to
}

// guest is a type that is served.
type guest struct {
	subs []natsconn.Subscription
	from int // which source asked for it
}

// follow starts the sources. What they bring is served until leave; the first one that fails cancels
// with its error.
func (l *Listener) follow(
	ctx context.Context, cancel context.CancelCauseFunc, fixed map[string]Handler, sources []Source,
) *guests {
	g := &guests{
		l:       l,
		ctx:     ctx,
		fixed:   fixed,
		served:  map[string]*guest{},
		refused: map[string]bool{},
	}
	g.unhook = l.Conn.OnRefused(g.onRefused)
	for i, source := range sources {
		g.wg.Go(func() {
			var err error
			defer func() { // deferred for the sake of runtime.Goexit
				if ctx.Err() == nil {
					cancel(&sourceError{cmp.Or(err, errSourceEnded)})
				}
			}()
			err = source.Run(ctx, func(types []string) { g.serve(i, source.Handle, types) })
		})
	}
	return g
}

// serve makes the types of a source those that are served.
func (g *guests) serve(from int, h Handler, types []string) {
	added, gone := g.change(from, h, types)
	if len(gone) > 0 {
		g.wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(g.ctx), confirmFor)
			defer cancel()
			g.l.unsubscribe(ctx, gone)
		})
	}
	if len(added) == 0 {
		return
	}
	g.l.Log.WithField("types", added).Info("deciders listen to more types")
	if err := g.l.announce(g.ctx, added); err != nil && g.ctx.Err() == nil {
		g.l.again() // all are announced when the connection lets them through
	}
}

func (g *guests) change(
	from int, h Handler, types []string,
) (added []string, gone []natsconn.Subscription) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, typ := range types {
		if g.fixed[typ] != nil || g.served[typ] != nil || g.refused[typ] {
			continue
		}
		err := subject.ValidateID("workflow type", typ)
		var subs []natsconn.Subscription
		if err == nil {
			subs, err = g.l.listenTo(typ, h)
		}
		if err != nil {
			g.l.Log.WithField("type", typ).WithField("err", err).
				Error("deciders cannot listen to this type: it is left out")
			gone = append(gone, subs...)
			continue
		}
		g.served[typ] = &guest{subs: subs, from: from}
		added = append(added, typ)
	}
	for typ, t := range g.served {
		if t.from == from && !slices.Contains(types, typ) {
			gone = append(gone, t.subs...)
			delete(g.served, typ)
		}
	}
	return added, gone
}

// onRefused takes out a type that this user may not listen to. One that is half heard would look
// healthy.
func (g *guests) onRefused(e *natsconn.RefusedError) {
	if !e.Subscribe {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for typ, t := range g.served {
		if !slices.Contains(g.l.subjects(typ), e.Subject) {
			continue
		}
		g.l.Log.WithField("type", typ).WithField("err", e).
			Errorf("deciders may not listen to this type, so it is left out: %s", e.Hint())
		for _, sub := range t.subs {
			_ = sub.Close() // of a subscription that was refused there is nothing to close
		}
		g.refused[typ] = true
		delete(g.served, typ)
		return
	}
}

// types are those that are served now, registered ones too.
func (g *guests) types() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(
		slices.Values(slices.AppendSeq(slices.Collect(maps.Keys(g.fixed)), maps.Keys(g.served))))
}

// leave waits for the sources, which end with their context, and hands over what is still listened
// to.
func (g *guests) leave() (subs []natsconn.Subscription) {
	g.wg.Wait()
	g.unhook()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range g.served {
		subs = append(subs, t.subs...)
	}
	clear(g.served)
	return subs
}
