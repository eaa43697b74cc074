package drover_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

func TestTypes(t *testing.T) {
	c, s := newService(t, drover.Options{})
	ctx := t.Context()
	stored := &schemas.TypeInfo{V: 1, Kind: schemas.WorkflowKind, Name: "order", Version: "2", Status: schemas.TypeRegistered}
	var registered schemas.TypeRegisterRequest
	on(s, "typeRegister", func(_ int, req schemas.TypeRegisterRequest) any {
		registered = req
		return schemas.TypeResponse{Type: stored, Changed: true}
	})
	defaults := &schemas.WorkflowTypeDefaults{TaskPriority: 3}
	got, err := c.RegisterType(ctx, schemas.WorkflowKind, "order", &drover.TypeOptions{Version: "2", Description: "d", Workflow: defaults})
	if err != nil {
		t.Fatal(err)
	}
	want := schemas.TypeRegisterRequest{V: 1, Kind: schemas.WorkflowKind, Name: "order", Version: "2", Description: "d", Workflow: defaults}
	if diff := cmp.Diff(want, registered) + cmp.Diff(stored, got); diff != "" {
		t.Fatal(diff)
	}
	if _, err := c.RegisterType(ctx, schemas.ActivityKind, "charge", nil); err != nil || registered.Name != "charge" {
		t.Fatalf("got %v, %+v", err, registered)
	}
	var asked schemas.TypeRequest
	for verb, do := range map[string]func() error{
		"typeDeprecate":   func() error { _, err := c.DeprecateType(ctx, schemas.WorkflowKind, "order", "2"); return err },
		"typeUndeprecate": func() error { _, err := c.UndeprecateType(ctx, schemas.WorkflowKind, "order", "2"); return err },
		"typeDescribe":    func() error { _, err := c.DescribeType(ctx, schemas.WorkflowKind, "order", "2"); return err },
		"typeDelete":      func() error { return c.DeleteType(ctx, schemas.WorkflowKind, "order", "2") },
	} {
		on(s, verb, func(n int, req schemas.TypeRequest) any {
			asked = req
			if n == 2 {
				return schemas.TypeResponse{Error: schemas.Errorf(schemas.CodeNotFound, "no such type").WithHint("register it")}
			}
			return schemas.TypeResponse{Type: stored}
		})
		asked = schemas.TypeRequest{}
		if err := do(); err != nil || asked != (schemas.TypeRequest{V: 1, Kind: schemas.WorkflowKind, Name: "order", Version: "2"}) {
			t.Fatalf("%s: got %v, asked %+v", verb, err, asked)
		}
		if e := wantError(t, do(), drover.ErrNotFound); e.Hint != "register it" || e.Op != verb {
			t.Fatalf("%s: got %+v", verb, e)
		}
	}
}

// A code that has no sentinel is found by the code.
func TestTypeAlreadyExists(t *testing.T) {
	c, s := newService(t, drover.Options{})
	on(s, "typeRegister", func(int, schemas.TypeRegisterRequest) any {
		return schemas.TypeResponse{Error: schemas.Errorf(schemas.CodeAlreadyExists, "another description").InField("description")}
	})
	_, err := c.RegisterType(t.Context(), schemas.WorkflowKind, "order", nil)
	if e, ok := errors.AsType[*drover.Error](err); !ok || e.Code != schemas.CodeAlreadyExists || !errors.Is(err, &schemas.Error{Code: schemas.CodeAlreadyExists}) {
		t.Fatalf("got %v, want the code already_exists", err)
	}
}

// Bad input: nothing is sent.
func TestTypeArgumentsAreChecked(t *testing.T) {
	c, _ := newService(t, drover.Options{})
	_, kind := c.RegisterType(t.Context(), "lambda", "a", nil)
	_, name := c.DescribeType(t.Context(), schemas.ActivityKind, "", "")
	version := c.DeleteType(t.Context(), schemas.ActivityKind, "a", strings.Repeat("1", 65))
	_, defaults := c.RegisterType(t.Context(), schemas.ActivityKind, "a", &drover.TypeOptions{Workflow: &schemas.WorkflowTypeDefaults{}})
	for word, err := range map[string]error{"kind": kind, "name": name, "version": version, "workflow": defaults} {
		if e := wantError(t, err, drover.ErrInvalid); !strings.Contains(e.Error(), word) {
			t.Fatalf("got %q, want it to hold %q", e, word)
		}
	}
}

func TestListTypes(t *testing.T) {
	c, s := newService(t, drover.Options{})
	var asked []schemas.TypeListRequest
	on(s, "typeList", func(n int, req schemas.TypeListRequest) any {
		asked = append(asked, req)
		if n == 1 {
			return schemas.TypeListResponse{Types: []schemas.TypeInfo{{Name: "a"}, {Name: "b"}}, Cursor: "b"}
		}
		return schemas.TypeListResponse{Types: []schemas.TypeInfo{{Name: "c"}}}
	})
	var names []string
	for i, err := range c.ListTypes(t.Context(), drover.TypeListOptions{Kind: schemas.ActivityKind, Prefix: "p", Status: schemas.TypeDeprecated}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, i.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
		t.Fatal(diff)
	}
	want := schemas.TypeListRequest{V: 1, Kind: schemas.ActivityKind, Prefix: "p", Status: schemas.TypeDeprecated, Limit: 1000}
	second := want
	second.Cursor = "b"
	if diff := cmp.Diff([]schemas.TypeListRequest{want, second}, asked); diff != "" {
		t.Fatal(diff)
	}
}
