package decider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
)

// Source tells a running worker for which workflow types a decider answers. It calls serve with all
// of them, at first and whenever they change, and returns when ctx is done; if it returns earlier,
// or panics, the worker stops with its error. serve returns when the worker listens to the new
// types and has said so; a type that is left out is served no more.
type Source func(ctx context.Context, serve func(types []string)) error

// Follow makes d the decider of types that come and go while the worker runs. A type that is
// registered by its name stays with that decider. Every call is made before Run. It panics on a nil
// source or decider.
//
// A type that the NATS server does not let the worker listen to is logged and left out: what
// somebody adds elsewhere stops no worker.
func (w *Worker) Follow(source Source, d Decider) {
	if f, ok := d.(Func); source == nil || d == nil || ok && f == nil {
		panic("decider: Follow: the source or the decider is nil")
	}
	if w.running.Load() {
		panic("decider: Follow: the worker runs already: follow before Run")
	}
	w.sources = append(w.sources, followed{source, d})
}

type followed struct {
	source  Source
	decider Decider
}

// run asks the source until it ends. A panic is an error.
func (f followed) run(ctx context.Context, serve func([]string)) (err error) {
	defer caught(&err)
	return f.source(ctx, serve)
}

// guests are the types of a shift that come and go.
type guests struct {
	s      *session
	ctx    context.Context // of the shift's listening; the sources end with it
	fixed  map[string]Decider
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

// follow starts the sources. What they bring goes to the shift's pool until leave; the first one
// that fails cancels with its error.
func (s *session) follow(
	ctx context.Context,
	cancel context.CancelCauseFunc,
	fixed map[string]Decider,
	sources []followed,
) *guests {
	g := &guests{
		s:       s,
		ctx:     ctx,
		fixed:   fixed,
		served:  map[string]*guest{},
		refused: map[string]bool{},
	}
	g.unhook = s.conn.OnRefused(g.onRefused)
	for i, f := range sources {
		g.wg.Go(func() {
			var err error
			defer func() { // deferred for the sake of runtime.Goexit
				if ctx.Err() == nil {
					cancel(&sourceError{cmp.Or(err, errSourceEnded)})
				}
			}()
			err = f.run(ctx, func(types []string) { g.serve(i, f.decider, types) })
		})
	}
	return g
}

// sourceError is why a source has ended before its worker.
type sourceError struct{ error }

func (e *sourceError) Unwrap() error { return e.error }

var errSourceEnded = errors.New("it ended by itself")

// serve makes the types of a source those that are served.
func (g *guests) serve(from int, d Decider, types []string) {
	added, gone := g.change(from, d, types)
	if len(gone) > 0 {
		g.wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(g.ctx), abandonAfter)
			defer cancel()
			g.s.unsubscribe(ctx, gone)
		})
	}
	if len(added) == 0 {
		return
	}
	g.s.log.WithField("types", added).Info("deciders listen to more types")
	if err := g.s.announce(g.ctx, added); err != nil && g.ctx.Err() == nil {
		g.s.again() // all are announced when the connection lets them through
	}
}

func (g *guests) change(
	from int,
	d Decider,
	types []string,
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
			subs, err = g.s.listenTo(typ, d)
		}
		if err != nil {
			g.s.log.WithField("type", typ).
				WithField("err", err).
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
		if !slices.Contains(g.s.subjects(typ), e.Subject) {
			continue
		}
		g.s.log.WithField("type", typ).
			WithField("err", e).
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
		slices.Values(slices.AppendSeq(slices.Collect(maps.Keys(g.fixed)), maps.Keys(g.served))),
	)
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

// stopped adds to the error of a stop why the shift ended by itself, if it did.
func stopped(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if refused, ok := errors.AsType[*refusedError](cause); ok {
		return errors.Join(refused, err)
	}
	if errors.Is(cause, natsconn.ErrClosed) {
		return errors.Join(fmt.Errorf("decider worker: connection: %w", cause), err)
	}
	if e, ok := errors.AsType[*sourceError](cause); ok {
		return errors.Join(fmt.Errorf("decider worker: the source of its types: %w", e.error), err)
	}
	return err
}
