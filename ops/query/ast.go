package query

// Query is a question as it was understood. There is no NOT in it: every condition says what it
// asks for by itself.
type Query struct {
	Where Expr // nil: all rows
	// Group asks for counts: at most two. Groups come by falling count, then by their keys.
	Group []Grouping
	// Order is what rows are sorted by, first what counts most. Empty is started, latest first.
	// Rows that have not the field come last, in both directions; where all fields are equal, the
	// smaller run comes first, then the smaller workflow id. A query with Group has no Order.
	Order []Order
	Limit int // of rows or of groups; 0: none was given
}

// Expr is a condition: [And], [Or] or [*Condition].
type Expr interface{ expr() }

// And holds where all of its terms hold. It has two at least, and none is an And.
type And []Expr

// Or holds where one of its terms holds. It has two at least, and none is an Or.
type Or []Expr

// Condition is about one field. Whatever it asks for, a row that has not the field does not match,
// with Not no more than without it. IsNull alone is for such rows.
type Condition struct {
	Field Field
	Op    Op
	// Not turns In, StartsWith, Contains and IsNull around: the row has the field, and the rest
	// does not hold. Of tags it says that none of them is such a one.
	Not bool
	// Values has one value, but for In one or more, all different and of one kind, and for IsNull
	// none.
	Values []Value
}

func (And) expr()        {}
func (Or) expr()         {}
func (*Condition) expr() {}

// Op is what a condition asks of its field. The other operators of the language are made of these:
// = is In with one value, BETWEEN is two conditions.
type Op uint8

// The operators. In and IsNull go with any field.
const (
	In   Op = iota
	Less    // of any field but status, start mode and tags, as the three that follow
	LessEqual
	Greater
	GreaterEqual
	StartsWith // of text other than status and start mode, tags among it, as Contains
	Contains
	IsNull
)

// Field is a column of the rows, or an attribute by its name.
type Field struct {
	Column    Column
	Attribute string // of ColumnAttribute only
}

// Column is a field that every row may have.
type Column uint8

// The columns, with the fields of Row that they are.
const (
	ColumnAttribute Column = iota // Attributes
	ColumnID                      // WorkflowID
	ColumnRun
	ColumnType
	ColumnVersion
	ColumnStatus
	ColumnStarted
	ColumnClosed
	ColumnTook // Closed less Started, of closed runs
	ColumnEvents
	ColumnTag // Tags: of several, one that matches is enough
	ColumnParent
	ColumnFirst
	ColumnReason
	ColumnStartMode
	ColumnSchedule
)

// Kind is how a value compares.
type Kind uint8

// The kinds. Started and Closed compare with an Instant, Took with a Span, Events with a Number,
// all others with a Text. An attribute compares with a Text as it stands; with a Number as the
// number that it is, and if it is none, it counts as absent.
const (
	Text    Kind = iota // by its bytes
	Number              // whole ones of 64 bits exactly, others as 64-bit floats
	Instant             // nanoseconds since the Unix epoch: a schemas.Timestamp
	Span                // nanoseconds
)

// Value is what a field is compared with.
type Value struct {
	Kind Kind
	Text string // of Text
	// Int is the value of Instant and Span, and of a Number unless Fraction is set.
	Int int64
	// Float is the value of a Number that is not a whole one of 64 bits.
	Float    float64
	Fraction bool
}

// Grouping is what groups have in common.
type Grouping struct {
	// Field is status, type, parent, reason, an attribute, started or closed.
	Field Field
	By    Bucket // of started and closed only, and always
}

// Bucket is a stretch of time in UTC.
type Bucket uint8

// The buckets.
const (
	Whole Bucket = iota // no time at all
	Hour
	Day
)

// Order is one thing to sort by: a field other than tags. Attributes that are numbers come before
// those that are not.
type Order struct {
	Field      Field
	Descending bool
}
