// Package store keeps deployed flows and registered step types in the bucket drover-<ns>-flows.
//
//	flow.<name>.<version>   a definition, as model.Encode writes it
//	flow.<name>.current     which version a start takes
//	type.<id>.…             the same for step types
//
// Invariants:
//
//   - A version is its content: it is written once, before anything names it, and never changed. So
//     a run keeps the version that it began with, and two who deploy the same content at once
//     agree.
//   - The current version of a name changes by compare-and-set only, and only to a version that is
//     there.
//   - Deploying what is current already writes nothing.
//   - What is read is compared with its version: a value that was damaged or replaced is an error,
//     never a run of something else.
//   - Entries that cannot be read are told and passed over; they spoil no list.
//
// Considered: verbs of the broker, as types have them. But a broker would carry definitions that it
// cannot judge, because flows lie above it, and it needs none of them to decide. So those who
// deploy write the bucket themselves; it has no rollups, by which one who may write a key could
// wipe it.
//
// Errors are of type *schemas.Error where there is something to say about them, else those of
// package post. The commands and flow deciders call it.
package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/internal/bucketkey"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// Kind tells flows from step types. They have names of their own.
type Kind string

// The kinds.
const (
	Flow     Kind = "flow"
	StepType Kind = "type"
)

// String is how people call it.
func (k Kind) String() string {
	if k == StepType {
		return "step type"
	}
	return "flow"
}

// Limits of a namespace. What a bucket holds is read by everybody who deploys or decides, so it
// does not grow without bound.
const (
	MaxStored   = 512 << 10 // bytes of one stored definition
	MaxNames    = 1000      // names of each kind
	MaxVersions = 1000      // versions of one name
)

const (
	versionDigits = 32
	current       = "current"
	casPause      = 5 * time.Millisecond // between a refused compare-and-set and the next one
	casAttempts   = 200
)

// Store is the bucket of a namespace. It keeps nothing in memory; every call asks.
type Store struct {
	conn   *natsconn.Conn
	ns     subject.Namespace
	bucket string
}

// Open returns the store of a namespace. It asks nothing yet; the servers of the namespace make the
// bucket.
func Open(conn *natsconn.Conn, ns subject.Namespace) *Store {
	return &Store{conn: conn, ns: ns, bucket: ns.BucketFlows()}
}

func keyOf(kind Kind, name, last string) string {
	return string(kind) + "." + bucketkey.Escape(name) + "." + last
}

// Deployed is what a deployment did, or would do.
type Deployed struct {
	Kind     Kind
	Name     string
	Version  string
	Previous string // the version that was current before; empty if there was none
	Stored   bool   // the version was not there before
	Changed  bool   // it was not current before
}

// nameOf gives the name under which a definition is deployed.
func nameOf(kind Kind, d *model.Definition) (string, error) {
	name, field := d.Name, "name"
	if kind == StepType {
		name, field = d.ID, "id"
	}
	switch {
	case name == "":
		return "", schemas.Errorf(schemas.CodeInvalid, "the %s has no %s", kind, field).
			InField(field).WithHint("write %s: … at the top of the file", field)
	case strings.Contains(name, "${"):
		return "", schemas.Errorf(schemas.CodeInvalid, "the name %q holds an expression",
			syntax.Clip(name)).InField(field).WithHint("a name is fixed when the flow is deployed")
	}
	if err := subject.ValidateID(field, name); err != nil {
		return "", schemas.Errorf(schemas.CodeInvalid, "%v", err).InField(field)
	}
	return name, nil
}

// Plan tells what Deploy would do, and refuses what it would refuse.
func (s *Store) Plan(ctx context.Context, kind Kind, d *model.Definition) (*Deployed, error) {
	p, err := s.plan(ctx, kind, d)
	if err != nil {
		return nil, err
	}
	return &p.Deployed, nil
}

type plan struct {
	Deployed
	value []byte
	rev   uint64 // of the current key
}

func (s *Store) plan(ctx context.Context, kind Kind, d *model.Definition) (*plan, error) {
	name, err := nameOf(kind, d)
	if err != nil {
		return nil, err
	}
	value, err := d.Encode()
	if err != nil {
		return nil, err
	}
	if len(value) > MaxStored {
		return nil, schemas.Errorf(schemas.CodeTooLarge, "the %s %s takes %d bytes, more than %d",
			kind, name, len(value), MaxStored).
			WithHint("split it: move parts into flows of their own and start them with child")
	}
	p := &plan{Deployed: Deployed{Kind: kind, Name: name, Version: d.Version()}, value: value}
	now, rev, err := s.current(ctx, kind, name)
	switch {
	case err != nil:
		return nil, err
	case now != nil:
		p.Previous = now.Version
	}
	p.rev = rev
	p.Changed = p.Previous != p.Version
	if have, err := s.version(ctx, kind, name, p.Version); err != nil {
		return nil, err
	} else if p.Stored = have == nil; p.Stored {
		return p, s.room(ctx, kind, name)
	}
	return p, nil
}

// room refuses a new version where there are too many. Two who deploy at once may both pass: the
// limit is against growth, not a promise.
func (s *Store) room(ctx context.Context, kind Kind, name string) error {
	versions, err := s.Versions(ctx, kind, name)
	if err != nil {
		return err
	}
	if len(versions) >= MaxVersions {
		return schemas.Errorf(schemas.CodeLimit, "the %s %s has %d versions, and more are not "+
			"allowed", kind, name, len(versions)).WithHint(
			"delete versions that no run uses: nats kv del %s %s",
			s.bucket, keyOf(kind, name, "VERSION"))
	}
	if len(versions) > 0 {
		return nil
	}
	names, err := s.conn.KVMatching(ctx, s.bucket, string(kind)+".*."+current)
	if err != nil {
		return s.explain(err)
	}
	if len(names) >= MaxNames {
		return schemas.Errorf(schemas.CodeLimit, "the namespace has %d %ss, and more are not "+
			"allowed", len(names), kind).WithHint("delete what nobody uses: nats kv del %s %s",
			s.bucket, keyOf(kind, "NAME", current))
	}
	return nil
}

// Deploy stores a definition and makes it the current one of its name. A flow is deployed under its
// name, a step type under its id. The same content again changes nothing; content that was current
// before becomes it again. When two deploy a name at once, both versions are stored, and the one
// that came last counts.
func (s *Store) Deploy(ctx context.Context, kind Kind, d *model.Definition) (*Deployed, error) {
	stored := false
	for range casAttempts {
		p, err := s.plan(ctx, kind, d)
		if err != nil {
			return nil, err
		}
		if !p.Changed && !p.Stored {
			return &p.Deployed, nil
		}
		if p.Stored {
			_, err = s.conn.KVCreate(ctx, s.bucket, keyOf(kind, p.Name, p.Version), p.value, 0)
			stored = stored || err == nil
			if err != nil && !errors.Is(err, natsconn.ErrWrongSequence) &&
				!errors.Is(err, natsconn.ErrInFlight) {
				return nil, s.explain(err)
			}
		}
		if err == nil && p.Changed { // else somebody had deleted the version alone
			err = s.choose(ctx, p, d)
		}
		if err == nil {
			p.Stored = stored
			return &p.Deployed, nil
		}
		if !errors.Is(err, natsconn.ErrWrongSequence) && !errors.Is(err, natsconn.ErrInFlight) {
			return nil, s.explain(err)
		}
		if sleep.For(ctx, casPause) != nil {
			return nil, fmt.Errorf(
				"flows: deploy: %w; whether it was deployed, drover flow show tells", ctx.Err())
		}
	}
	return nil, schemas.Errorf(schemas.CodeConflict, "others keep deploying the %s", kind).
		WithHint("deploy it again when they are done")
}

// choose makes a version the current one.
func (s *Store) choose(ctx context.Context, p *plan, d *model.Definition) error {
	value, err := schemas.MarshalJSON(record{
		V: schemas.Version, Name: p.Name, Version: p.Version, Description: brief(d.Description),
		Steps: stepsOf(d),
	})
	if err != nil {
		return err
	}
	key := keyOf(p.Kind, p.Name, current)
	if p.rev == 0 {
		_, err = s.conn.KVCreate(ctx, s.bucket, key, value, 0)
		return err
	}
	_, err = s.conn.KVUpdate(ctx, s.bucket, key, value, p.rev, 0)
	return err
}

func stepsOf(d *model.Definition) (n int) {
	for range d.All() {
		n++
	}
	return n
}

// Versions are those of a name that are stored, sorted. None is no error.
func (s *Store) Versions(ctx context.Context, kind Kind, name string) ([]string, error) {
	keys, err := s.conn.KVMatching(ctx, s.bucket, keyOf(kind, name, "*"))
	if err != nil {
		return nil, s.explain(err)
	}
	var all []string
	for _, key := range keys {
		if v := key[strings.LastIndexByte(key, '.')+1:]; v != current {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all, nil
}

// explain says what a namespace without the bucket lacks.
func (s *Store) explain(err error) error {
	if errors.Is(err, natsconn.ErrNoStream) {
		return schemas.Errorf(schemas.CodeNotFound,
			"the namespace %s keeps no flows: it has no bucket %s", s.ns, s.bucket).
			WithHint("check --namespace, --nats, and the JetStream domain of its context; a " +
				"server of this version makes the bucket when it starts")
	}
	if errors.Is(err, natsconn.ErrFull) {
		return schemas.Errorf(schemas.CodeLimit, "the bucket %s is full: %v", s.bucket, err).
			WithHint("delete versions that no run uses, or %s",
				natsconn.RoomHint(err, string(s.ns)))
	}
	return fmt.Errorf("flows: %w", err)
}
