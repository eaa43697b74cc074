package query

import (
	"slices"
	"strings"

	"github.com/droverhq/drover/decider/flow/syntax"
)

// columns are the fields with their names: the first is the one that is written, the others are
// those of the API and of Temporal.
var columns = []struct {
	column Column
	kind   Kind
	names  []string
}{
	{ColumnID, Text, []string{"id", "workflowId"}},
	{ColumnRun, Text, []string{"run", "RunId"}},
	{ColumnType, Text, []string{"type", "WorkflowType"}},
	{ColumnVersion, Text, []string{"version", "typeVersion"}},
	{ColumnStatus, Text, []string{"status", "ExecutionStatus"}},
	{ColumnStarted, Instant, []string{"started", "startedAt", "StartTime", "ExecutionTime"}},
	{ColumnClosed, Instant, []string{"closed", "closedAt", "CloseTime"}},
	{ColumnTook, Span, []string{"took", "ExecutionDuration"}},
	{ColumnEvents, Number, []string{"events", "HistoryLength"}},
	{ColumnTag, Text, []string{"tag", "tags"}},
	{ColumnParent, Text, []string{"parent", "ParentWorkflowId"}},
	{ColumnFirst, Text, []string{"first", "firstRun"}},
	{ColumnReason, Text, []string{"reason"}},
	{ColumnStartMode, Text, []string{"startMode"}},
	{ColumnSchedule, Text, []string{"schedule", "TemporalScheduledById", "ScheduledById"}},
}

// foreign are fields of Temporal that rows do not have.
var foreign = []string{
	"BatcherUser", "BinaryChecksums", "BuildIds", "HistorySizeBytes", "ParentRunId", "RootRunId",
	"RootWorkflowId", "StateTransitionCount", "TaskQueue", "ChangeVersion", "NamespaceDivision",
	"ReportedProblems", "ScheduledStartTime", "SchedulePaused", "WorkerDeployment",
	"WorkerDeploymentVersion", "WorkflowVersioningBehavior",
}

// attributePrefix begins the name of an attribute that could be taken for something else.
const attributePrefix = "attr."

// fieldNamed finds a field by its name, whatever the case of its letters. What is no field is an
// attribute, unless it is like the name of a field: then want says what would be right, and near
// which field that is.
func fieldNamed(name string) (f Field, want, near string) {
	if name == "" || fold(name, attributePrefix) {
		return f, "the name of an attribute", ""
	}
	if len(name) > len(attributePrefix) && fold(name[:len(attributePrefix)], attributePrefix) {
		return Field{Attribute: name[len(attributePrefix):]}, "", ""
	}
	for _, c := range columns {
		if slices.ContainsFunc(c.names, func(n string) bool { return fold(n, name) }) {
			return Field{Column: c.column}, "", ""
		}
	}
	another := " (an attribute of this name is " + bareOrQuoted(attributePrefix+syntax.Clip(name)) + ")"
	bare := name
	if len(name) > 8 && fold(name[:8], "Temporal") {
		bare = name[8:]
	}
	if slices.ContainsFunc(foreign, func(n string) bool { return fold(n, bare) }) {
		return f, "another field, as Drover has no such one" + another, ""
	}
	for _, w := range oldWords {
		if fold(w.name, name) {
			return f, "a condition such as " + w.instead + another, ""
		}
	}
	for _, c := range columns {
		for _, n := range c.names {
			if alike(name, n) {
				return f, "a field" + another, n
			}
		}
	}
	return Field{Attribute: name}, "", ""
}

func fold(a, b string) bool { return strings.EqualFold(a, b) }

// alike tells whether one name was probably meant for another: one letter is wrong, is too many or
// is missing, or two changed places; of eight letters and more it may be two.
func alike(got, name string) bool {
	most := 1
	if len(name) >= 8 {
		most = 2
	}
	return len(name) > 2 && max(len(got)-len(name), len(name)-len(got)) <= most &&
		syntax.Distance(strings.ToLower(got), strings.ToLower(name)) <= most
}

// String is the name as it stands in a query.
func (f Field) String() string {
	if f.Column != ColumnAttribute {
		return columns[f.Column-1].names[0]
	}
	same, _, _ := fieldNamed(f.Attribute)
	if same != f || !isName(token{kind: wordToken, text: f.Attribute}) {
		return bareOrQuoted(attributePrefix + f.Attribute)
	}
	return bareOrQuoted(f.Attribute)
}

func bareOrQuoted(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !inWord(r) }) {
		return quote(name, '`')
	}
	return name
}

// kind is how the field compares, of attributes unless it is with a number.
func (f Field) kind() Kind {
	if f.Column == ColumnAttribute {
		return Text
	}
	return columns[f.Column-1].kind
}

// takes tells whether an operator goes with a field.
func (f Field) takes(op Op) bool {
	switch op {
	case Less, LessEqual, Greater, GreaterEqual:
		return f.choices() == nil && f.Column != ColumnTag
	case StartsWith, Contains:
		return f.choices() == nil && f.kind() == Text
	default:
		return true
	}
}
