package drover

import (
	"context"
	"iter"

	"github.com/droverhq/drover/schemas"
)

// TypeOptions of [Client.RegisterType]. The zero value is a type without version, description and
// defaults.
type TypeOptions struct {
	// Version is up to 64 bytes of text. A start or a decision names it to use this type. Defaults
	// to none.
	Version string
	// Description is for people, up to 1,024 bytes. Defaults to none.
	Description string
	// Workflow holds the defaults of a workflow type, Activity those of an activity type: what a
	// start or a decision leaves out. Default to none.
	Workflow *schemas.WorkflowTypeDefaults
	Activity *schemas.ActivityTypeDefaults
}

// RegisterType registers a workflow or activity type. A registered type never changes: the same
// registration again does nothing and returns what is there, deprecated or not; another one under
// the same name and version is refused with [ErrAlreadyExists], and the text names what differs.
// Register a new version instead.
//
// When it returns, the server that answered knows the type; the others learn of it within moments.
//
// Errors: [ErrInvalid], [ErrAlreadyExists], [ErrLimit] if there are as many types as there may be,
// [ErrUnavailable], [ErrTimeout]. After the last two it is unknown whether the type is registered;
// a repeat finds out.
func (c *Client) RegisterType(
	ctx context.Context, kind schemas.TypeKind, name string, o *TypeOptions,
) (*schemas.TypeInfo, error) {
	var opts TypeOptions
	if o != nil {
		opts = *o
	}
	req := &schemas.TypeRegisterRequest{
		V: schemas.Version, Kind: kind, Name: name, Version: opts.Version,
		Description: opts.Description, Workflow: opts.Workflow, Activity: opts.Activity,
	}
	q := query{verb: "typeRegister"}
	if err := req.Validate(); err != nil {
		return nil, newError(q, err)
	}
	return c.typeCall(ctx, q, req)
}

// DeprecateType refuses new workflows, or activities, of a type; those that run go on. An empty
// version means the type without one. It returns the type as it is then. A repeat does nothing.
//
// Errors, also of [Client.UndeprecateType], [Client.DeleteType] and [Client.DescribeType]:
// [ErrNotFound], [ErrInvalid], [ErrUnavailable], [ErrTimeout].
func (c *Client) DeprecateType(
	ctx context.Context, kind schemas.TypeKind, name, version string,
) (*schemas.TypeInfo, error) {
	return c.typeRequest(ctx, "typeDeprecate", kind, name, version)
}

// UndeprecateType undoes [Client.DeprecateType]. A repeat does nothing.
func (c *Client) UndeprecateType(
	ctx context.Context, kind schemas.TypeKind, name, version string,
) (*schemas.TypeInfo, error) {
	return c.typeRequest(ctx, "typeUndeprecate", kind, name, version)
}

// DeleteType deletes a type that is deprecated; any other is refused with [ErrConflict]. What runs
// goes on, and name and version may be registered anew. Where the namespace does not demand
// registered types, a deleted type may be started again, as any that was never registered. A repeat
// does nothing.
func (c *Client) DeleteType(
	ctx context.Context, kind schemas.TypeKind, name, version string,
) error {
	_, err := c.typeRequest(ctx, "typeDelete", kind, name, version)
	return err
}

// DescribeType returns a type with its defaults and its status.
func (c *Client) DescribeType(
	ctx context.Context, kind schemas.TypeKind, name, version string,
) (*schemas.TypeInfo, error) {
	return c.typeRequest(ctx, "typeDescribe", kind, name, version)
}

func (c *Client) typeRequest(
	ctx context.Context, verb string, kind schemas.TypeKind, name, version string,
) (*schemas.TypeInfo, error) {
	req := &schemas.TypeRequest{V: schemas.Version, Kind: kind, Name: name, Version: version}
	q := query{verb: verb}
	if err := req.Validate(); err != nil {
		return nil, newError(q, err)
	}
	return c.typeCall(ctx, q, req)
}

func (c *Client) typeCall(ctx context.Context, q query, req any) (*schemas.TypeInfo, error) {
	a, err := call(ctx, c, q, req, func(a *schemas.TypeResponse) *schemas.Error { return a.Error })
	if err != nil {
		return nil, err
	}
	return a.Type, nil
}

// TypeListOptions filter [Client.ListTypes]. Empty fields match all.
type TypeListOptions struct {
	Kind   schemas.TypeKind
	Prefix string // how the name begins
	Status schemas.TypeStatus
	// Limit ends the list after so many types. Defaults to 0, all of them.
	Limit int
}

// ListTypes yields registered types in the order of kind, name and version. The sequence ends with
// the last type, or with an error, which is its last value. A change that another server made a
// moment ago may not be seen yet.
func (c *Client) ListTypes(
	ctx context.Context, o TypeListOptions,
) iter.Seq2[schemas.TypeInfo, error] {
	req := schemas.TypeListRequest{
		V: schemas.Version, Kind: o.Kind, Prefix: o.Prefix, Status: o.Status,
	}
	q := query{verb: "typeList"}
	fetch := func(cursor string, size int) ([]schemas.TypeInfo, string, error) {
		ask := req
		ask.Cursor, ask.Limit = cursor, size
		page, err := call(ctx, c, q, &ask,
			func(a *schemas.TypeListResponse) *schemas.Error { return a.Error })
		if err != nil {
			return nil, "", err
		}
		return page.Types, page.Cursor, nil
	}
	return pages(q, o.Limit, fetch)
}
