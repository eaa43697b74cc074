// Package query is the language in which one asks for workflows. It is that of Temporal's list
// filters, with Drover's names beside Temporal's:
//
//	type = order AND status IN (failed, timedOut) AND started > now-24h ORDER BY closed DESC
//	WorkflowType = 'order' AND ExecutionStatus = 'Failed' AND StartTime > '2026-11-01'
//
// A query is a condition, then GROUP BY, ORDER BY and LIMIT, all of which may be left out; an empty
// one asks for all runs. Keywords, fields, statuses and start modes have no case.
//
// # Conditions
//
//	= != < <= > >=              of two values
//	[NOT] IN (a, b)             one of several
//	[NOT] BETWEEN a AND b       both ends belong to it
//	[NOT] STARTS_WITH 'a'       of a text
//	[NOT] CONTAINS 'a'          of a text
//	IS [NOT] NULL               whether there is any value
//	NOT, AND, OR, ( )           NOT binds most, OR least
//
// What a run does not have is neither equal to something nor different from it: no condition but IS
// NULL finds such a run, with NOT no more than without it. Runs without a customer are not among
// customer != 'ACME'; customer IS NULL OR customer != 'ACME' finds them, too.
//
// # Fields
//
//	id         WorkflowId                      text
//	run        RunId                           text
//	type       WorkflowType                    text
//	version    typeVersion                     text: of the type
//	status     ExecutionStatus                 open (Running), paused, completed, failed, canceled,
//	                                           terminated, timedOut, continuedAsNew; closed is each
//	                                           of the last six
//	started    startedAt, StartTime,           time
//	           ExecutionTime
//	closed     closedAt, CloseTime             time; open runs have none
//	took       ExecutionDuration               length of time, from started to closed
//	events     HistoryLength                   number, also of open runs
//	tag        tags                            text; of several tags, one is enough
//	parent     ParentWorkflowId                text: a workflow id
//	first      firstRun                        text: the run that a chain of continuations began
//	                                           with; that run itself has none
//	reason                                     text: why a failed run failed
//	startMode                                  Manual, Schedule, Child, Replay, AutoStart,
//	                                           'AutoStart (Continuation)'
//	schedule   TemporalScheduledById           text: the schedule that started it
//
// Any other name is an attribute. attr.x is attribute x also where x is the name of a field, is a
// keyword or begins with a digit. An attribute whose name is like that of a field has to be written
// so, too, because it could be a slip: one letter is wrong, too many or missing, or two changed
// places; with names of eight letters and more it may be two letters. Names with other signs than
// letters, digits and _-.:/+@#$ stand in backticks: `two words`.
//
// # Values
//
// A text has single or double quotes. In it, the quote is written twice or as \', a backslash as
// \\; there are \n, \t, \r and \u00e9. A word that begins with a letter needs no quotes. Texts
// compare by their bytes.
//
// A number has no quotes: priority > 3. Then attributes compare as numbers, and those that are none
// are left out. With quotes they compare as texts: in priority > '3' the text 10 is less.
//
// A time is RFC 3339, a date (its midnight in UTC), or now with or without a length of time:
// now-24h, now-1d12h, now+5m. A length of time is such as 90s, 5m or 1h30m. Both may have quotes.
//
// # The rest
//
// GROUP BY asks for counts by one or two of status, type, parent, reason, an attribute, and started
// or closed BY hour or BY day, in UTC. The largest group comes first; LIMIT bounds the groups.
//
// ORDER BY takes any fields but tag, with ASC, which is the default, or DESC. Runs that do not have
// the field come last in both directions. Attributes that are numbers come before other texts.
// Without ORDER BY, the latest start comes first.
//
// # Words
//
// Words NAME=VALUE alone, with blanks between them, mean that all of them hold: status=failed
// type=order. A value ends at the blank unless it has quotes. Such words also are prefix=, and
// started-after=, started-before=, closed-after= and closed-before= with a time, or with a length
// of time for so long ago.
//
// # The package
//
// It is pure: what is asked about is a [Row], and the time comes in as an argument.
// [Query.Matches], [Query.Compare] and [Grouping.Key] are what a query means; whatever answers from
// columns is tested against them. An [*Error] says where and why a query is refused.
package query
