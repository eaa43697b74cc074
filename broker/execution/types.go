package execution

import "github.com/droverhq/drover/schemas"

// Types is the table of registered types as the namespace has it at one moment. It never changes; a
// nil table knows no type and allows any.
type Types struct {
	required bool
	types    map[typeKey]*schemas.TypeInfo
}

type typeKey struct {
	kind          schemas.TypeKind
	name, version string
}

// NewTypes returns a table of infos. If required is set, types that are not in it may not be used.
func NewTypes(required bool, infos []schemas.TypeInfo) *Types {
	t := &Types{required: required, types: make(map[typeKey]*schemas.TypeInfo, len(infos))}
	for i := range infos {
		t.types[typeKey{infos[i].Kind, infos[i].Name, infos[i].Version}] = &infos[i]
	}
	return t
}

// Workflow returns a workflow type, nil if it is not registered, and why it may not be used, "" if
// it may.
func (t *Types) Workflow(name, version string) (*schemas.TypeInfo, schemas.Cause) {
	return t.find(typeKey{schemas.WorkflowKind, name, version}, schemas.CauseWorkflowTypeUnknown,
		schemas.CauseWorkflowTypeDeprecated)
}

// Activity is [Types.Workflow] for an activity type.
func (t *Types) Activity(name, version string) (*schemas.TypeInfo, schemas.Cause) {
	return t.find(typeKey{schemas.ActivityKind, name, version}, schemas.CauseActivityTypeUnknown,
		schemas.CauseActivityTypeDeprecated)
}

func (t *Types) find(
	k typeKey, unknown, deprecated schemas.Cause,
) (*schemas.TypeInfo, schemas.Cause) {
	if t == nil || len(t.types) == 0 && !t.required {
		return nil, ""
	}
	info := t.types[k]
	switch {
	case info == nil && t.required:
		return nil, unknown
	case info != nil && info.Status == schemas.TypeDeprecated:
		return info, deprecated
	}
	return info, ""
}

// workflowDefaults are those of a registered workflow type, or none.
func (t *Types) workflowDefaults(name, version string) *schemas.WorkflowTypeDefaults {
	if info, _ := t.Workflow(name, version); info != nil && info.Workflow != nil {
		return info.Workflow
	}
	return &noWorkflowDefaults
}

// activityDefaults are those of a registered activity type, or none.
func (t *Types) activityDefaults(name, version string) *schemas.ActivityTypeDefaults {
	if info, _ := t.Activity(name, version); info != nil && info.Activity != nil {
		return info.Activity
	}
	return &noActivityDefaults
}

// Nobody writes to them: one for all spares an allocation for each start and each activity.
var (
	noWorkflowDefaults schemas.WorkflowTypeDefaults
	noActivityDefaults schemas.ActivityTypeDefaults
)
