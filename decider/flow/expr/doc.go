// Package expr is the expression language of flows: ${…} in texts, the operators of let, and
// transforms.
//
//	ParseTemplate  "The answer is ${x}."            interpolation
//	ParseLet       "${x} * 3 + 1", "${a} ?? none"   words, operators, quotes
//	ParseValue     {a: ["${x}"]}                    any value of a step, in one of three modes
//	ParseChain     "trim | split , | first"         transforms
//
// # Interpolation
//
// Between ${ and } stands a path: no white space, no operators, no braces inside. A text that is
// exactly one ${…} becomes what the path leads to, with its type; in a longer text numbers,
// booleans, durations and instants become text, and lists, maps and null are errors. What is put in
// is not looked at again. A name that is missing, null or not yet available is an error, and these
// three can be told apart ([ErrMissing], [ErrNull], [ErrUnavailable]). Names get their meaning from
// a [Resolver].
//
// # let
//
// A let is made of words with white space between them. An operator is a word of its own, so a-b
// and http://x/y?z are texts. Words without an operator between them are one text, with the white
// space as it is. A word in quotes is a text that is not interpolated. A word that is one ${…}
// keeps its type; so does a bare true, false, null or number, if writing it again gives the same
// word: 5 and 1.5 are numbers, 007 and 1.10 are texts. From loose to tight:
//
//	c ? a : b     the arm that is not taken is not evaluated
//	a ?? b        b if a is null, missing, not available, or fails
//	||  &&        booleans, from left to right as far as needed
//	== !=         with coercion: 5 equals "5.0"; not two in a row
//	< <= > >=     an error if the two sides have no order; not two in a row
//	+ -           numbers; durations; an instant and a duration; two instants
//	* / %         numbers; a duration by a number; % for integers only
//	! ( )
//
// Parentheses group where an operand may begin; elsewhere they are text, so f(x) and "hello
// (world)" need no quotes. Integers have 64 bits and overflow is an error. Dividing integers gives
// an integer if it is whole and else a double. A text that is a number, a duration or an instant
// computes as one. What cannot be computed is an error that points at the operator; it never
// silently becomes a text. Quotes make a text of anything.
//
// # Why not a library
//
// github.com/expr-lang/expr was considered. It tokenizes like a programming language: bare words
// are names there and texts here, quotes in the middle of a word, paths such as /a/b, and a-b would
// be operators or errors, and white space is lost. Its integers wrap, 4 / 2 is a float, == does not
// coerce, and a missing name cannot be told from one that is not yet available. To turn a let into
// its syntax one needs the lexer of this package, and to get these rules one would replace each of
// its operators by a function; what is left is a precedence parser of a hundred lines.
//
// # Invariants
//
//   - Everything is checked when it is parsed; parsed expressions are immutable and may be shared.
//     Errors of parsing are of type *syntax.Error, errors of evaluation of type *Error; both point
//     into the text.
//   - Evaluation is bounded by the [Limits] of its [Env] in steps, size of results and depth.
//     Nothing catches a reached limit, ?? neither.
//   - It reaches nothing but what the Resolver gives: no clock, no dice, no file, no network, no
//     environment. The same expression with the same answers of the Resolver gives the same value.
//   - Values are those of package value and are never changed; results may share parts with what
//     the Resolver gave.
//
// The interpreter of flows and package condition are the callers.
package expr
