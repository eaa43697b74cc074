package cli

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
	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/server"
)

// The exit codes, which scripts rely on.
const (
	ExitDone         = 0
	ExitFailed       = 1 // the workflow failed or the request was refused
	ExitUsage        = 2
	ExitNoConnection = 3
	ExitTimeout      = 4
	// nothing else is wrong, but runs wait for somebody to mend their decider
	ExitParked   = 5
	ExitNotFirst = 6 // somebody else was the first of the period
	// a server with --recycle-exit has ended for a recycle: it is to be started again
	ExitRecycled    = 75
	ExitInterrupted = 130 // Ctrl-C ended a wait
)

// ErrInterrupted is the end of a wait by Ctrl-C.
var ErrInterrupted = errors.New("interrupted, and the workflow goes on")

// HintNoNamespace is about a namespace that is not where it was looked for.
const HintNoNamespace = "check --namespace, --nats, and the JetStream domain of its context; a " +
	"server makes the namespace when it starts"

// hintTimeout is about a wait that nothing more is known of.
const hintTimeout = `wait longer, by a longer --timeout; "drover node list" tells whether a server has stopped`

// usageError says that the command line is wrong. Nothing was done.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Usage marks err as wrong usage of cmd, which may be nil.
func Usage(cmd *cobra.Command, err error) error {
	if already, ok := errors.AsType[*usageError](err); ok && (already.hint != "" || cmd == nil) {
		return err
	}
	e := &usageError{err: err}
	if cmd != nil {
		e.hint = fmt.Sprintf("see %q", cmd.CommandPath()+" --help")
	}
	return e
}

// ExitCode is the one table from errors to exit codes. A deadline that passed because nobody was
// there counts as no connection, which is what has to be mended.
func ExitCode(err error) int {
	_, wrong := errors.AsType[*usageError](err)
	e, judged := errors.AsType[*drover.Error](err)
	judged = judged && e.Code != "" // a command that was interrupted has no code
	switch {
	case err == nil:
		return ExitDone
	case errors.Is(err, ErrInterrupted):
		return ExitInterrupted
	case errors.Is(err, ErrParked):
		return ExitParked
	case errors.Is(err, ErrNotFirst):
		return ExitNotFirst
	case errors.Is(err, server.ErrRecycled):
		return ExitRecycled
	case wrong,
		IsAny(err, drover.ErrInvalid, server.ErrInvalidOptions, embedded.ErrInvalidOptions,
			topology.ErrInvalidOptions, claims.ErrInvalidOptions, nodes.ErrInvalidOptions):
		return ExitUsage
	case IsAny(err, drover.ErrUnavailable, natsconn.ErrNoConnection, natsconn.ErrDisconnected),
		!judged && errors.Is(err, natsconn.ErrNoResponders):
		return ExitNoConnection
	case IsAny(err, drover.ErrTimeout, natsconn.ErrTimeout, context.DeadlineExceeded):
		return ExitTimeout
	default:
		return ExitFailed
	}
}

// IsAny tells whether err is one of targets.
func IsAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// report writes err to stderr: what was wrong, with which id, and what to do next.
func (a *App) report(err error) {
	text, doc := DescribeError(err)
	if a.JSON {
		a.errDocument(struct {
			Error *schemas.Error `json:"error"`
		}{doc})
		return
	}
	fmt.Fprintln(a.Stderr, Printable(text))
	if e, ok := errors.AsType[*query.Error](err); ok {
		for line := range strings.SplitSeq(e.Caret(), "\n") {
			fmt.Fprintln(a.Stderr, "  "+Printable(line))
		}
	}
	if doc.Hint != "" {
		fmt.Fprintln(a.Stderr, "  "+Printable(doc.Hint))
	}
}

// DescribeError gives the line for people, without the hint, and the document for programs.
func DescribeError(err error) (string, *schemas.Error) {
	if e, ok := errors.AsType[*drover.WorkflowError](err); ok {
		return e.Error(), &schemas.Error{
			Code: schemas.Code(e.Status), Message: strings.TrimPrefix(e.Error(), "drover: "),
			WorkflowID: e.ID, Run: e.Run,
		}
	}
	if e, ok := errors.AsType[*drover.Error](err); ok {
		bare := *e
		bare.Hint = ""
		code := cmp.Or(e.Code, schemas.CodeInternal)
		if e.Code == "" && ExitCode(err) == ExitNoConnection {
			code = schemas.CodeUnavailable
		}
		doc := &schemas.Error{
			Code: code, Message: e.Message(), Hint: e.Hint, WorkflowID: e.ID, Run: e.Run,
		}
		if refusal, ok := errors.AsType[*schemas.Error](e.Err); ok {
			doc.Message, doc.Field = refusal.Message, refusal.Field
		}
		return bare.Error(), doc
	}
	doc := &schemas.Error{Code: schemas.CodeInternal, Message: err.Error()}
	if e, ok := errors.AsType[*usageError](err); ok {
		doc.Code, doc.Hint = schemas.CodeInvalid, e.hint
	} else if e, ok := errors.AsType[*FlowsError](err); ok {
		doc.Code, doc.Hint = schemas.CodeInvalid, e.Hint
	} else if e, ok := errors.AsType[*natsconn.RefusedError](err); ok {
		doc.Code, doc.Hint = schemas.CodePermission, e.Hint()
	} else if errors.Is(err, natsconn.ErrFull) {
		doc.Code, doc.Hint = schemas.CodeLimit, natsconn.RoomHint(err, "NAME")
	} else if ExitCode(err) == ExitUsage {
		doc.Code = schemas.CodeInvalid
	} else if ExitCode(err) == ExitNoConnection {
		doc.Code = schemas.CodeUnavailable
	} else if ExitCode(err) == ExitTimeout {
		doc.Code, doc.Hint = schemas.CodeTimeout, hintTimeout
	}
	return "drover: " + err.Error(), doc
}

// RefusedIn names in a refusal the flags in the place of fields.
func RefusedIn(flags *strings.Replacer, err error) error {
	e, ok := errors.AsType[*drover.Error](err)
	refusal, refused := errors.AsType[*schemas.Error](err)
	if !ok || !refused || refusal.Code != schemas.CodeInvalid {
		return err
	}
	told, about := *e, *refusal
	if name, rest, ok := strings.Cut(about.Message, ": "); ok &&
		strings.HasSuffix(about.Field, name) {
		about.Message = rest // the field is said once
	}
	told.Err = &about
	about.Message, about.Field = flags.Replace(told.Message()), flags.Replace(about.Field)
	told.Hint = flags.Replace(e.Hint)
	return &told
}

// ErrParked is the end of an audit that has found nothing worse than parked runs.
var ErrParked = errors.New("parked")

// FlowsError says that files are wrong, which is no wrong usage. What is wrong with them has been
// shown.
type FlowsError struct{ Text, Hint string }

func (e *FlowsError) Error() string { return e.Text }

// ErrNotFirst is the end of a command that was not the first of its period, and has said so.
var ErrNotFirst = errors.New("not the first")
