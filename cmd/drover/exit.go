package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/server"
)

// The exit codes, which scripts rely on.
const (
	exitDone         = 0
	exitFailed       = 1 // the workflow failed or the request was refused
	exitUsage        = 2
	exitNoConnection = 3
	exitTimeout      = 4
	exitParked       = 5   // nothing else is wrong, but runs wait for somebody to mend their decider
	exitNotFirst     = 6   // somebody else was the first of the period
	exitRecycled     = 75  // a server with --recycle-exit has ended for a recycle: it is to be started again
	exitInterrupted  = 130 // Ctrl-C ended a wait
)

// errInterrupted is the end of a wait by Ctrl-C.
var errInterrupted = errors.New("interrupted, and the workflow goes on")

// hintNoNamespace is about a namespace that is not where it was looked for.
const hintNoNamespace = "check --namespace, --nats, and the JetStream domain of its context; a server makes the namespace when it starts"

// hintTimeout is about a wait that nothing more is known of.
const hintTimeout = `wait longer, by a longer --timeout; "drover node list" tells whether a server has stopped`

// usageError says that the command line is wrong. Nothing was done.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usage marks err as wrong usage of cmd, which may be nil.
func usage(cmd *cobra.Command, err error) error {
	if already, ok := errors.AsType[*usageError](err); ok && (already.hint != "" || cmd == nil) {
		return err
	}
	e := &usageError{err: err}
	if cmd != nil {
		e.hint = fmt.Sprintf("see %q", cmd.CommandPath()+" --help")
	}
	return e
}

// exitCode is the one table from errors to exit codes. A deadline that passed because nobody was there counts as no
// connection, which is what has to be mended.
func exitCode(err error) int {
	_, wrong := errors.AsType[*usageError](err)
	e, judged := errors.AsType[*drover.Error](err)
	judged = judged && e.Code != "" // a command that was interrupted has no code
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.Is(err, errParked):
		return exitParked
	case errors.Is(err, errNotFirst):
		return exitNotFirst
	case errors.Is(err, server.ErrRecycled):
		return exitRecycled
	case wrong, isAny(err, drover.ErrInvalid, server.ErrInvalidOptions, embedded.ErrInvalidOptions, topology.ErrInvalidOptions, claims.ErrInvalidOptions, nodes.ErrInvalidOptions):
		return exitUsage
	case isAny(err, drover.ErrUnavailable, natsconn.ErrNoConnection, natsconn.ErrDisconnected), !judged && errors.Is(err, natsconn.ErrNoResponders):
		return exitNoConnection
	case isAny(err, drover.ErrTimeout, natsconn.ErrTimeout, context.DeadlineExceeded):
		return exitTimeout
	default:
		return exitFailed
	}
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// report writes err to stderr: what was wrong, with which id, and what to do next.
func (a *app) report(err error) {
	text, doc := describeError(err)
	if a.json {
		a.errDocument(struct {
			Error *schemas.Error `json:"error"`
		}{doc})
		return
	}
	fmt.Fprintln(a.stderr, printable(text))
	if doc.Hint != "" {
		fmt.Fprintln(a.stderr, "  "+printable(doc.Hint))
	}
}

// describeError gives the line for people, without the hint, and the document for programs.
func describeError(err error) (string, *schemas.Error) {
	if e, ok := errors.AsType[*drover.WorkflowError](err); ok {
		return e.Error(), &schemas.Error{
			Code: schemas.Code(e.Status), Message: strings.TrimPrefix(e.Error(), "drover: "), WorkflowID: e.ID, Run: e.Run,
		}
	}
	if e, ok := errors.AsType[*drover.Error](err); ok {
		bare := *e
		bare.Hint = ""
		code := cmp.Or(e.Code, schemas.CodeInternal)
		if e.Code == "" && exitCode(err) == exitNoConnection {
			code = schemas.CodeUnavailable
		}
		doc := &schemas.Error{Code: code, Message: e.Message(), Hint: e.Hint, WorkflowID: e.ID, Run: e.Run}
		if refusal, ok := errors.AsType[*schemas.Error](e.Err); ok {
			doc.Message, doc.Field = refusal.Message, refusal.Field
		}
		return bare.Error(), doc
	}
	doc := &schemas.Error{Code: schemas.CodeInternal, Message: err.Error()}
	if e, ok := errors.AsType[*usageError](err); ok {
		doc.Code, doc.Hint = schemas.CodeInvalid, e.hint
	} else if e, ok := errors.AsType[*flowsError](err); ok {
		doc.Code, doc.Hint = schemas.CodeInvalid, e.hint
	} else if e, ok := errors.AsType[*natsconn.RefusedError](err); ok {
		doc.Code, doc.Hint = schemas.CodePermission, e.Hint()
	} else if errors.Is(err, natsconn.ErrFull) {
		doc.Code, doc.Hint = schemas.CodeLimit, natsconn.RoomHint(err, "NAME")
	} else if exitCode(err) == exitUsage {
		doc.Code = schemas.CodeInvalid
	} else if exitCode(err) == exitNoConnection {
		doc.Code = schemas.CodeUnavailable
	} else if exitCode(err) == exitTimeout {
		doc.Code, doc.Hint = schemas.CodeTimeout, hintTimeout
	}
	return "drover: " + err.Error(), doc
}

// refusedIn names in a refusal the flags in the place of fields.
func refusedIn(flags *strings.Replacer, err error) error {
	e, ok := errors.AsType[*drover.Error](err)
	refusal, refused := errors.AsType[*schemas.Error](err)
	if !ok || !refused || refusal.Code != schemas.CodeInvalid {
		return err
	}
	told, about := *e, *refusal
	if name, rest, ok := strings.Cut(about.Message, ": "); ok && strings.HasSuffix(about.Field, name) {
		about.Message = rest // the field is said once
	}
	told.Err = &about
	about.Message, about.Field = flags.Replace(told.Message()), flags.Replace(about.Field)
	told.Hint = flags.Replace(e.Hint)
	return &told
}
