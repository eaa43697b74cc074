package workflow

import "errors"

// Saga undoes what was done, if what follows fails:
//
//	func book(ctx workflow.Context, trip Trip) (_ Booking, err error) {
//		saga := workflow.NewSaga(ctx)
//		defer saga.UndoOn(&err)
//		if _, err = workflow.Call(ctx, BookHotel, trip); err != nil {
//			return Booking{}, err
//		}
//		saga.Add(func(ctx workflow.Context) error {
//			_, err := workflow.Call(ctx, CancelHotel, trip)
//			return err
//		})
type Saga struct {
	ctx   Context
	undos []func(Context) error
}

// NewSaga returns a saga in which nothing was done.
func NewSaga(ctx Context) *Saga { return &Saga{ctx: WithoutCancel(ctx)} }

// Add adds what undoes a step. It gets a context that is not canceled with that of the saga.
func (s *Saga) Add(undo func(Context) error) { s.undos = append(s.undos, undo) }

// Undo undoes all steps, the newest first, also if one of them fails. It returns their errors.
func (s *Saga) Undo() error {
	var all []error
	for len(s.undos) > 0 {
		last := len(s.undos) - 1
		undo := s.undos[last]
		s.undos = s.undos[:last]
		all = append(all, undo(s.ctx))
	}
	return errors.Join(all...)
}

// UndoOn undoes all steps if *err is an error when a function returns, but not if the run continues
// as new. Defer it. What fails then is written to the log and added to the text of *err, and does
// not change how the run ends.
func (s *Saga) UndoOn(err *error) {
	if _, continues := errors.AsType[*continueAsNew](*err); *err == nil || continues {
		return
	}
	if failed := s.Undo(); failed != nil {
		Log(s.ctx).WithError(failed).Error("something that was done cannot be undone")
		*err = errors.Join(*err, undoError{failed})
	}
}

// undoError is what failed in undoing. Its faults are not those of the run.
type undoError struct{ err error }

// Error implements error.
func (e undoError) Error() string { return "undo: " + e.err.Error() }
