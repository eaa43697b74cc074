// Package calendar evaluates the times of a schedule: cron expressions, intervals, calendars and
// single instants, without exceptions, in a time zone. It also divides time into the periods of
// fire-once windows.
//
// It is a function of its arguments: the time comes in as one. Only the zones are read from the
// system, by package internal/zones, which keeps them.
//
// # Cron
//
// An expression has five fields: minute, hour, day of month, month, day of week; or six, with the
// second first. A field is a list (1,15) of values, ranges (9-17), steps (*/5, 10-30/5, 10/5) and
// * or ?, which are any value. Months and days of the week have names (JAN, MON), and their ranges
// may go over the end (FRI-MON); 0 and 7 are Sunday.
//
// For days of the month there are L (the last), L-3 (the last but three), 15W (the day from Monday
// to Friday nearest to the 15th, in the same month) and LW (the last from Monday to Friday); for
// days of the week FRI#2 (the second Friday of the month) and FRIL (the last). Where both are
// given a day has to match both, as in Temporal; cron takes one of them, so [Calendar.Warnings]
// says it.
//
// # Where the clock is changed
//
// A time of an expression that names its hours, as 30 2 * * *, stands for the first instant at
// which the clock shows that time or a later one:
//
//   - if the clock leaves it out, that is the first instant after the gap; several such times make
//     one slot;
//   - if the clock shows it twice, that is the first one;
//   - a day that the clock leaves out as a whole has no slot.
//
// An expression whose hours are *, have a step, or are all 24 goes by elapsed time: it stands for
// each instant at which the clock shows its time. So every quarter of an hour (*/15 * * * *) is
// one in the repeated hour too.
//
// # Slots
//
// A slot is an instant, whole seconds for cron and calendars, whole milliseconds for intervals and
// single instants. Slots that coincide are one. Exceptions look at what the clock shows at the
// slot, so one that a gap moved to 03:00 is not taken away by an exception for hour 2. The last
// slot is before the year 2262, where a [schemas.Timestamp] ends.
package calendar
