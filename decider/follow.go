package decider

import "context"

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
