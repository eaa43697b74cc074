package schemas

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/droverhq/drover/internal/bucketkey"
)

// TypeKind is what a registered type is a type of.
type TypeKind string

// The kinds of types.
const (
	WorkflowKind TypeKind = "workflow"
	ActivityKind TypeKind = "activity"
)

// TypeStatus is where a registered type stands.
type TypeStatus string

// The statuses of a type. What runs when its type is deprecated goes on.
const (
	TypeRegistered TypeStatus = "REGISTERED"
	TypeDeprecated TypeStatus = "DEPRECATED"
)

// TypeInfo is a registered type: its name, its version and the defaults of those that use it. It
// does not change, but for its status: a change is a new version. It is the value of a key in the
// types bucket.
type TypeInfo struct {
	V            int        `json:"v,omitempty"`
	Kind         TypeKind   `json:"kind"`
	Name         string     `json:"name"`
	Version      string     `json:"version,omitempty"`
	Description  string     `json:"description,omitempty"`
	Status       TypeStatus `json:"status"`
	CreatedAt    Timestamp  `json:"createdAt"`
	DeprecatedAt Timestamp  `json:"deprecatedAt,omitempty"`
	// Workflow holds the defaults of a workflow type, Activity those of an activity type.
	Workflow *WorkflowTypeDefaults `json:"workflow,omitempty"`
	Activity *ActivityTypeDefaults `json:"activity,omitempty"`
}

// WorkflowTypeDefaults stand in for what a start, a child or a continuation leaves out.
type WorkflowTypeDefaults struct {
	ExecutionStartToCloseTimeout Duration          `json:"executionStartToCloseTimeout,omitempty"`
	TaskStartToCloseTimeout      Duration          `json:"taskStartToCloseTimeout,omitempty"`
	TaskScheduleToStartTimeout   Duration          `json:"taskScheduleToStartTimeout,omitempty"`
	TaskPriority                 int               `json:"taskPriority,omitempty"`
	ChildPolicy                  ChildPolicy       `json:"childPolicy,omitempty"`
	ActivityDefaults             *ActivityDefaults `json:"activityDefaults,omitempty"`
}

// ActivityTypeDefaults stand in for what a decision to schedule leaves out. They come before the
// defaults of the run.
type ActivityTypeDefaults struct {
	List                   string       `json:"list,omitempty"`
	TaskPriority           int          `json:"taskPriority,omitempty"`
	ScheduleToStartTimeout Duration     `json:"scheduleToStartTimeout,omitempty"`
	StartToCloseTimeout    Duration     `json:"startToCloseTimeout,omitempty"`
	ScheduleToCloseTimeout Duration     `json:"scheduleToCloseTimeout,omitempty"`
	HeartbeatTimeout       Duration     `json:"heartbeatTimeout,omitempty"`
	NotIdempotent          bool         `json:"notIdempotent,omitempty"`
	Retry                  *RetryPolicy `json:"retry,omitempty"`
}

// Limits of a type, as SWF has them, in bytes and in types of one kind in a namespace. A name has
// the limit of an id.
const (
	MaxTypeVersionLen     = 64
	MaxTypeDescriptionLen = 1024
	MaxTypesOfAKind       = 10_000
)

// TypeRegisterRequest registers a type. A repeat with the same contents is answered like the first
// one.
type TypeRegisterRequest struct {
	V           int                   `json:"v,omitempty"`
	Kind        TypeKind              `json:"kind"`
	Name        string                `json:"name"`
	Version     string                `json:"version,omitempty"`
	Description string                `json:"description,omitempty"`
	Workflow    *WorkflowTypeDefaults `json:"workflow,omitempty"`
	Activity    *ActivityTypeDefaults `json:"activity,omitempty"`
}

// TypeRequest names one type: typeDeprecate, typeUndeprecate, typeDelete and typeDescribe.
type TypeRequest struct {
	V       int      `json:"v,omitempty"`
	Kind    TypeKind `json:"kind"`
	Name    string   `json:"name"`
	Version string   `json:"version,omitempty"`
}

// TypeResponse is a type as it stands after the request; after typeDelete, as it was last. Changed
// is false when the request found nothing to do, because it was carried out before.
type TypeResponse struct {
	V       int       `json:"v,omitempty"`
	Type    *TypeInfo `json:"type,omitempty"`
	Changed bool      `json:"changed,omitempty"`
	Error   *Error    `json:"error,omitempty"`
}

// TypeListRequest lists types. Empty filters match all; Prefix is how the name begins.
type TypeListRequest struct {
	V      int        `json:"v,omitempty"`
	Kind   TypeKind   `json:"kind,omitempty"`
	Prefix string     `json:"prefix,omitempty"`
	Status TypeStatus `json:"status,omitempty"`
	Limit  int        `json:"limit,omitempty"`
	Cursor string     `json:"cursor,omitempty"`
}

// TypeListResponse is a page of types in the order of kind, name and version; Cursor continues it
// and is empty at its end.
type TypeListResponse struct {
	V      int        `json:"v,omitempty"`
	Types  []TypeInfo `json:"types"`
	Cursor string     `json:"cursor,omitempty"`
	Error  *Error     `json:"error,omitempty"`
}

// Type names the type of the request.
func (q *TypeRegisterRequest) Type() *TypeRequest {
	return &TypeRequest{V: q.V, Kind: q.Kind, Name: q.Name, Version: q.Version}
}

// Info is the type that the request registers at a time.
func (q *TypeRegisterRequest) Info(at Timestamp) *TypeInfo {
	return &TypeInfo{
		V: Version, Kind: q.Kind, Name: q.Name, Version: q.Version, Description: q.Description,
		Status: TypeRegistered, CreatedAt: at, Workflow: q.Workflow, Activity: q.Activity,
	}
}

// Key is the type's key in the bucket: <kind>.<name>.<version>. Every byte of name and version
// outside A-Z a-z 0-9 _ - is written =XX, and no version is "=", which looks like no escape.
func (q *TypeRequest) Key() string {
	return string(q.Kind) + "." + bucketkey.Escape(q.Name) + "." +
		cmp.Or(bucketkey.Escape(q.Version), "=")
}

// String names the type as the arguments of the command line do.
func (q *TypeRequest) String() string {
	quote := func(s string) string {
		if s == bucketkey.Escape(s) {
			return s
		}
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	s := string(q.Kind) + " " + quote(q.Name)
	if q.Version != "" {
		s += " --version " + quote(q.Version)
	}
	return s
}

// ParseTypeInfo reads the value of a key of the bucket. One that belongs to another key is refused:
// anybody may have written it by hand.
func ParseTypeInfo(key string, value []byte) (*TypeInfo, error) {
	i := new(TypeInfo)
	if err := Unmarshal(value, i); err != nil {
		return nil, err
	}
	if own := (&TypeRequest{Kind: i.Kind, Name: i.Name, Version: i.Version}).Key(); own != key {
		return nil, fmt.Errorf("%w: the value belongs to the key %s", ErrMalformed, own)
	}
	return i, nil
}

// Compare orders types by kind, name and version.
func (i *TypeInfo) Compare(j *TypeInfo) int {
	return cmp.Or(cmp.Compare(i.Kind, j.Kind), cmp.Compare(i.Name, j.Name),
		cmp.Compare(i.Version, j.Version))
}

// Cursor continues a list after i.
func (i *TypeInfo) Cursor() string {
	b, err := json.Marshal([]string{string(i.Kind), i.Name, i.Version})
	if err != nil {
		panic(err) // text always has a JSON form
	}
	return string(b)
}

// ParseCursor sets i to what lies before a cursor; "" is the beginning.
func (i *TypeInfo) ParseCursor(cursor string) *Error {
	if cursor == "" {
		return nil
	}
	var parts []string
	if err := json.Unmarshal([]byte(cursor), &parts); err != nil || len(parts) != 3 {
		return Errorf(CodeInvalid, "the cursor %q is none that a list has returned", cursor).
			InField("cursor").WithHint("begin again without one")
	}
	i.Kind, i.Name, i.Version = TypeKind(parts[0]), parts[1], parts[2]
	return nil
}

// Matches applies the filters.
func (q *TypeListRequest) Matches(i *TypeInfo) bool {
	return (q.Kind == "" || q.Kind == i.Kind) && (q.Status == "" || q.Status == i.Status) &&
		strings.HasPrefix(i.Name, q.Prefix)
}

// Differs names the first field, in the order of the alphabet, that the request would change; "" if
// there is none. Left out and empty are the same.
func (i *TypeInfo) Differs(q *TypeRegisterRequest) string {
	want := q.Info(i.CreatedAt)
	want.V, want.Status, want.DeprecatedAt = i.V, i.Status, i.DeprecatedAt
	return differs(jsonTree(i), jsonTree(want), "")
}

func jsonTree(v any) (tree any) {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error() // a number that JSON cannot say: it equals nothing that was stored
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // exact
	if err := d.Decode(&tree); err != nil {
		return err.Error()
	}
	return tree
}

// differs compares JSON values; path is that of the two.
func differs(x, y any, path string) string {
	a, _ := x.(map[string]any)
	b, _ := y.(map[string]any)
	if a == nil && b == nil || x != nil && a == nil || y != nil && b == nil {
		if reflect.DeepEqual(x, y) {
			return ""
		}
		return path
	}
	var keys []string
	for k := range a {
		keys = append(keys, k)
	}
	for k := range b {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if field := differs(a[k], b[k], strings.TrimPrefix(path+"."+k, ".")); field != "" {
			return field
		}
	}
	return ""
}

// Validate checks the filters; the error names the field.
func (q *TypeListRequest) Validate() *Error {
	if q.Kind != "" && q.Kind != WorkflowKind && q.Kind != ActivityKind {
		return invalidType("kind", "it is %q; want %s or %s, or nothing for both",
			q.Kind, WorkflowKind, ActivityKind)
	}
	if q.Status != "" && q.Status != TypeRegistered && q.Status != TypeDeprecated {
		return invalidType("status", "it is %q; want %s or %s, or nothing for both",
			q.Status, TypeRegistered, TypeDeprecated)
	}
	return nil
}

// Validate checks the request; the error names the field.
func (q *TypeRegisterRequest) Validate() *Error {
	if err := q.Type().Validate(); err != nil {
		return err
	}
	switch {
	case len(q.Description) > MaxTypeDescriptionLen || !utf8.ValidString(q.Description):
		return invalidType("description", "%d bytes; want at most %d of UTF-8 text",
			len(q.Description), MaxTypeDescriptionLen)
	case q.Kind == WorkflowKind && q.Activity != nil:
		return invalidType("activity",
			"a workflow type has no defaults of an activity type; use workflow.activityDefaults")
	case q.Kind == ActivityKind && q.Workflow != nil:
		return invalidType("workflow", "an activity type has no defaults of a workflow type")
	case q.Workflow != nil:
		return q.Workflow.validate()
	case q.Activity != nil:
		return q.Activity.validate()
	}
	return nil
}

// Validate checks kind, name and version; the error names the field.
func (q *TypeRequest) Validate() *Error {
	if q.Kind != WorkflowKind && q.Kind != ActivityKind {
		return invalidType("kind", "it is %q; want %s or %s", q.Kind, WorkflowKind, ActivityKind)
	}
	if err := ValidateID("name", q.Name); err != nil {
		return Errorf(CodeInvalid, "%v", err).InField("name")
	}
	if q.Version == "" {
		return nil
	}
	if len(q.Version) > MaxTypeVersionLen {
		return invalidType("version", "%d bytes; want at most %d",
			len(q.Version), MaxTypeVersionLen)
	}
	if err := ValidateID("version", q.Version); err != nil {
		return Errorf(CodeInvalid, "%v", err).InField("version")
	}
	return nil
}

func invalidType(field, format string, args ...any) *Error {
	return Errorf(CodeInvalid, field+": "+format, args...).InField(field)
}

func (d *WorkflowTypeDefaults) validate() *Error {
	switch d.ChildPolicy {
	case "", ChildTerminate, ChildRequestCancel, ChildAbandon:
	default:
		return invalidType("workflow.childPolicy", "it is %q; want %s, %s or %s",
			d.ChildPolicy, ChildTerminate, ChildRequestCancel, ChildAbandon)
	}
	err := validateLimits("workflow.",
		namedLimit{"executionStartToCloseTimeout", d.ExecutionStartToCloseTimeout},
		namedLimit{"taskStartToCloseTimeout", d.TaskStartToCloseTimeout},
		namedLimit{"taskScheduleToStartTimeout", d.TaskScheduleToStartTimeout})
	if a := d.ActivityDefaults; a != nil && err == nil {
		err = validateActivity("workflow.activityDefaults.", a)
	}
	return err
}

func (d *ActivityTypeDefaults) validate() *Error {
	if r := d.Retry; r != nil {
		if err := r.validate("activity.retry."); err != nil {
			return err
		}
	}
	return validateActivity("activity.", &ActivityDefaults{
		List: d.List, ScheduleToStartTimeout: d.ScheduleToStartTimeout,
		StartToCloseTimeout:    d.StartToCloseTimeout,
		ScheduleToCloseTimeout: d.ScheduleToCloseTimeout, HeartbeatTimeout: d.HeartbeatTimeout,
	})
}

func (r *RetryPolicy) validate(prefix string) *Error {
	if len(r.NonRetryable) > maxNonRetryable {
		return invalidType(prefix+"nonRetryable", "%d reasons; want at most %d",
			len(r.NonRetryable), maxNonRetryable)
	}
	for _, reason := range r.NonRetryable {
		if err := ValidateID(prefix+"nonRetryable", reason); err != nil {
			return Errorf(CodeInvalid, "%v", err).InField(prefix + "nonRetryable")
		}
	}
	return r.validateLimits(prefix)
}

// validBackoff tells whether a request may ask for the coefficient. Histories and types of earlier
// versions hold others: what is below 1 counts as 1 there. NaN and infinity are refused: msgpack
// can say them and JSON cannot, so nobody could be shown the history, not even the run's decider.
func (r *RetryPolicy) validBackoff() bool {
	return r.BackoffCoefficient == 0 ||
		r.BackoffCoefficient >= 1 && r.BackoffCoefficient <= maxBackoffCoefficient
}

const (
	maxBackoffCoefficient = 1000
	maxNonRetryable       = 64
)

func validateActivity(prefix string, d *ActivityDefaults) *Error {
	if d.List != "" {
		if err := ValidateName(prefix+"list", d.List); err != nil {
			return Errorf(CodeInvalid, "%v", err).InField(prefix + "list")
		}
	}
	return d.validateLimits(prefix)
}
