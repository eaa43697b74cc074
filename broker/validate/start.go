// Package validate judges requests as brokers do, for brokers and for those who keep a request to
// send it later.
package validate

import (
	"cmp"
	"errors"

	"github.com/droverhq/drover/schemas"
)

// Start judges a start. It must have a workflow id and a run. The error names the field.
func Start(q *schemas.StartRequest) *schemas.Error {
	bad := func(field string, err error) *schemas.Error {
		return schemas.Errorf(schemas.CodeInvalid, "%v", err).InField(field)
	}
	for _, f := range []struct{ field, value string }{{"workflowId", q.WorkflowID}, {"type", q.Type}, {"run", q.Run}} {
		if err := schemas.ValidateID(f.field, f.value); err != nil {
			return bad(f.field, err)
		}
	}
	if len(q.Run) > schemas.MaxNameLen {
		return schemas.Errorf(schemas.CodeInvalid, "run: %d bytes; want at most %d",
			len(q.Run), schemas.MaxNameLen).
			InField("run").
			WithHint("leave it out and one is made")
	}
	for _, r := range q.Run {
		if r == '.' {
			return schemas.Errorf(schemas.CodeInvalid, "run: a run id has no dots").
				InField("run").
				WithHint("leave it out and one is made")
		}
	}
	if d := q.ActivityDefaults; d != nil && d.List != "" {
		if err := schemas.ValidateName("activityDefaults.list", d.List); err != nil {
			return bad("activityDefaults.list", err)
		}
	}
	if err := q.ValidateLimits(); err != nil {
		return err
	}
	if err := schemas.ValidateTags(q.TagList); err != nil {
		return err
	}
	if n := schemas.AttributesSize(q.Attributes); n > schemas.MaxAttributes {
		return schemas.Errorf(schemas.CodeInvalid, "attributes: %d bytes; want at most %d",
			n, schemas.MaxAttributes).
			InField("attributes").
			WithHint("pass it in the input")
	}
	if err := q.ChildPolicy.Validate("childPolicy"); err != nil {
		return bad("childPolicy", err)
	}
	if err := cmp.Or(schemas.ValidateLength("typeVersion", q.TypeVersion),
		schemas.ValidateLength("requestId", q.RequestID)); err != nil {
		return err
	}
	for _, err := range []error{q.StartMode.ValidateRequested("startMode"), q.Continuation.Validate("continuation")} {
		if e, ok := errors.AsType[*schemas.Error](err); ok {
			return e
		}
	}
	return validatePolicies(q)
}

// validatePolicies judges what a start says about runs of its id that exist.
func validatePolicies(q *schemas.StartRequest) *schemas.Error {
	switch q.IDReusePolicy {
	case "", schemas.ReuseAllow, schemas.ReuseAllowFailed, schemas.ReuseReject:
	default:
		return schemas.Errorf(schemas.CodeInvalid, "idReusePolicy is %q; want %s, %s or %s",
			q.IDReusePolicy, schemas.ReuseAllow, schemas.ReuseAllowFailed, schemas.ReuseReject).
			InField("idReusePolicy")
	}
	switch q.IDConflictPolicy {
	case "", schemas.ConflictFail, schemas.ConflictUseExisting:
	case schemas.ConflictTerminateExisting:
		if q.IDReusePolicy == schemas.ReuseReject {
			return schemas.Errorf(schemas.CodeInvalid,
				"idConflictPolicy %s ends the open run and idReusePolicy %s then forbids the "+
					"new one", q.IDConflictPolicy, q.IDReusePolicy).InField("idReusePolicy").
				WithHint("use idReusePolicy %s", schemas.ReuseAllow)
		}
	default:
		return schemas.Errorf(schemas.CodeInvalid, "idConflictPolicy is %q; want %s, %s or %s",
			q.IDConflictPolicy, schemas.ConflictFail, schemas.ConflictUseExisting,
			schemas.ConflictTerminateExisting).
			InField("idConflictPolicy")
	}
	if q.Signal == nil {
		return nil
	}
	if err := schemas.ValidateID("signal.name", q.Signal.Name); err != nil {
		return schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("signal.name")
	}
	if err := schemas.ValidateSignalRequestID("signal.requestId", q.Signal.RequestID); err != nil {
		return err
	}
	if q.IDConflictPolicy == schemas.ConflictFail {
		return schemas.Errorf(schemas.CodeInvalid,
			"a start with a signal signals the open run; idConflictPolicy %s says otherwise",
			q.IDConflictPolicy).
			InField("idConflictPolicy").
			WithHint("leave it out, or use %s to begin anew", schemas.ConflictTerminateExisting)
	}
	return nil
}
