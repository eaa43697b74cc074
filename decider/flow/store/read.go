package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/internal/bucketkey"
	"github.com/droverhq/drover/schemas"
)

// record is the value of a current key. Unknown fields are left alone: a later program may add
// some.
type record struct {
	V           int    `json:"v"`
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	Steps       int    `json:"steps"`
}

// Entry is one deployed flow or step type.
type Entry struct {
	Key         string // in the bucket
	Kind        Kind
	Name        string
	Version     string
	Description string // shortened
	Steps       int    // with those in blocks and nested workflows
	// Deployed is when the version became the current one, by the clock of the NATS server.
	Deployed schemas.Timestamp
	// Err says why the entry cannot be read; then there are a key and perhaps a kind and a name,
	// and nothing else.
	Err error
}

const maxBrief = 200

// brief shortens a description for lists.
func brief(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) > maxBrief {
		return string([]rune(s)[:maxBrief-1]) + "…"
	}
	return s
}

// parseRecord reads the value of a current key.
func parseRecord(key string, value []byte) (*record, error) {
	var r record
	if err := json.Unmarshal(value, &r); err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	kind, rest, _ := strings.Cut(key, ".")
	switch {
	case r.V != schemas.Version:
		return nil, fmt.Errorf("it has version %d, this drover reads %d: upgrade it",
			r.V, schemas.Version)
	case !isVersion(r.Version):
		return nil, fmt.Errorf("it names the version %q, want %d hexadecimal digits",
			syntax.Clip(r.Version), versionDigits)
	case r.Name == "" || keyOf(Kind(kind), r.Name, current) != kind+"."+rest:
		return nil, fmt.Errorf("it names %q, which has another key", syntax.Clip(r.Name))
	}
	return &r, nil
}

func isVersion(s string) bool {
	return len(s) == versionDigits && !strings.ContainsFunc(s,
		func(c rune) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') })
}

// current reads from the leader which version counts; nil if none does.
func (s *Store) current(ctx context.Context, kind Kind, name string) (*record, uint64, error) {
	key := keyOf(kind, name, current)
	value, rev, err := s.conn.KVGet(ctx, s.bucket, key)
	if errors.Is(err, natsconn.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, s.explain(err)
	}
	r, err := parseRecord(key, value)
	if err != nil {
		return nil, 0, schemas.Errorf(schemas.CodeConflict, "the key %s of bucket %s cannot be "+
			"read: %v", key, s.bucket, err).WithHint(
			"if no newer drover wrote it, delete it and deploy again: nats kv del %s %s",
			s.bucket, key)
	}
	return r, rev, nil
}

// version reads a definition from the leader; nil if there is none.
func (s *Store) version(
	ctx context.Context, kind Kind, name, version string,
) (*model.Definition, error) {
	key := keyOf(kind, name, version)
	value, _, err := s.conn.KVGet(ctx, s.bucket, key)
	if errors.Is(err, natsconn.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, s.explain(err)
	}
	d, err := model.Decode(value)
	if err == nil && d.Version() != version {
		err = fmt.Errorf("it holds the version %s", d.Version())
	}
	if err != nil {
		return nil, schemas.Errorf(schemas.CodeConflict, "the key %s of bucket %s cannot be "+
			"used: %v", key, s.bucket, err).WithHint(
			"if no newer drover wrote it, delete it and deploy again: nats kv del %s %s",
			s.bucket, key)
	}
	return d, nil
}

// Get reads a deployed definition, and which version it is. An empty version is the current one;
// the beginning of a version, of four digits at least, is enough if it is the only one. What is not
// there is an error with [schemas.CodeNotFound].
func (s *Store) Get(
	ctx context.Context, kind Kind, name, version string,
) (*model.Definition, string, error) {
	version, err := s.find(ctx, kind, name, version)
	if err != nil {
		return nil, "", err
	}
	d, err := s.version(ctx, kind, name, version)
	if err == nil && d == nil {
		err = schemas.Errorf(schemas.CodeNotFound, "the %s %s has no version %s",
			kind, name, version).InField("version").
			WithHint("see which there are: drover flow show %s", name)
	}
	return d, version, err
}

// Current reads from the leader which version of a name is current. None is an error with
// [schemas.CodeNotFound].
func (s *Store) Current(ctx context.Context, kind Kind, name string) (version string, err error) {
	r, _, err := s.current(ctx, kind, name)
	if err == nil && r == nil {
		err = schemas.Errorf(schemas.CodeNotFound, "there is no %s %q", kind, name).InField("name").
			WithHint(
				"see what there is with drover flow list, or deploy it with drover flow deploy FILE")
	}
	if err != nil {
		return "", err
	}
	return r.Version, nil
}

func (s *Store) find(ctx context.Context, kind Kind, name, version string) (string, error) {
	if version == "" {
		return s.Current(ctx, kind, name)
	}
	if isVersion(version) {
		return version, nil
	}
	if len(version) < 4 ||
		!isVersion((version + strings.Repeat("0", versionDigits))[:versionDigits]) {
		return "", schemas.Errorf(schemas.CodeInvalid, "the version is %q: want %d hexadecimal "+
			"digits, or the first four or more of them", syntax.Clip(version), versionDigits).
			InField("version").WithHint("see which there are: drover flow show %s", name)
	}
	all, err := s.Versions(ctx, kind, name)
	if err != nil {
		return "", err
	}
	found := slices.DeleteFunc(all, func(v string) bool { return !strings.HasPrefix(v, version) })
	if len(found) != 1 {
		return "", schemas.Errorf(schemas.CodeNotFound, "%d versions of the %s %q begin with "+
			"%s, want one", len(found), kind, name, version).InField("version").
			WithHint("see which there are: drover flow show %s", name)
	}
	return found[0], nil
}

// listPage is how many keys are read in one round trip.
const listPage = 256

// List gives what is current, flows first, by name. Any replica may answer, so what was deployed a
// moment ago may be missing.
func (s *Store) List(ctx context.Context) ([]Entry, error) {
	latest := map[string]natsconn.Stored{} // a key that changes between two pages comes twice
	prefix := "$KV." + s.bucket + "."
	for from, more := uint64(1), true; more; {
		var page []natsconn.Stored
		var err error
		page, more, err = s.conn.BatchGet(ctx, "KV_"+s.bucket, prefix+"*.*."+current, from,
			listPage)
		if err != nil {
			return nil, s.explain(err)
		}
		for _, m := range page {
			from = m.Seq + 1
			latest[strings.TrimPrefix(m.Subject, prefix)] = m
		}
		more = more && len(page) > 0
	}
	var all []Entry
	for key, m := range latest {
		if len(m.Data) > 0 { // else it was deleted
			all = append(all, entryOf(key, m))
		}
	}
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Key, b.Key))
	})
	return all, nil
}

func entryOf(key string, m natsconn.Stored) Entry {
	kind, rest, _ := strings.Cut(key, ".")
	e := Entry{Key: key, Kind: Kind(kind), Deployed: schemas.At(m.Time)}
	e.Name, _ = bucketkey.Unescape(strings.TrimSuffix(rest, "."+current))
	r, err := parseRecord(key, m.Data)
	switch {
	case err != nil:
		e.Err = err
	case e.Kind != Flow && e.Kind != StepType:
		e.Err = fmt.Errorf("it is of the kind %q, which this drover does not know",
			syntax.Clip(kind))
	default:
		e.Version, e.Description, e.Steps = r.Version, r.Description, r.Steps
	}
	return e
}

// maxRounds bounds how often a text is parsed to find the types that it uses. A type brings those
// that it uses itself.
const maxRounds = 4

// Known calls parse with the registered step types that it asks for, as they are now. Parsing asks
// for a type by calling a function, which cannot wait for a server: so what was asked for and not
// known is read then, and parse is called again. Only its last call counts. Names that begin is
// already asked about are answered there first; it may be nil.
func (s *Store) Known(
	ctx context.Context, begin func(name string) (*model.Definition, bool),
	parse func(types func(name string) (*model.Definition, bool)) error,
) error {
	read := map[string]*model.Definition{}
	for round := 1; ; round++ {
		asked := map[string]bool{}
		err := parse(func(name string) (*model.Definition, bool) {
			if begin != nil {
				if d, ok := begin(name); ok {
					return d, true
				}
			}
			d, tried := read[name]
			if !tried {
				asked[name] = true
			}
			return d, d != nil
		})
		if len(asked) == 0 || round == maxRounds {
			return err
		}
		for name := range asked {
			if len(read) >= MaxNames {
				return err // a text that names more cannot be meant
			}
			if err := s.readType(ctx, name, read); err != nil {
				return err
			}
		}
	}
}

func (s *Store) readType(
	ctx context.Context, name string, read map[string]*model.Definition,
) error {
	read[name] = nil
	if subject.ValidateID("id", name) != nil {
		return nil // nobody could deploy it
	}
	r, _, err := s.current(ctx, StepType, name)
	if err != nil || r == nil {
		return err
	}
	d, err := s.version(ctx, StepType, name, r.Version)
	read[name] = d
	return err
}
