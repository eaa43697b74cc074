package calendar

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

var macros = map[string]string{
	"@hourly":   "0 * * * *",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@weekly":   "0 0 * * 0",
	"@monthly":  "0 0 1 * *",
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
}

// An expression or a field may have so many bytes: sixty values of two digits have 179.
const longestText = 400

// splitCron returns the fields of a cron expression. Year is any one.
func splitCron(text string) (*ops.ScheduleCalendar, *schemas.Error) {
	wrong := func(format string, args ...any) *schemas.Error {
		return schemas.Errorf(schemas.CodeInvalid, format, args...)
	}
	if len(text) > longestText {
		return nil, wrong("an expression of %d bytes is too long", len(text)).
			WithHint("use at most %d, or several expressions", longestText)
	}
	expression := strings.TrimSpace(text)
	switch upper := strings.ToUpper(expression); {
	case strings.HasPrefix(upper, "CRON_TZ=") || strings.HasPrefix(upper, "TZ="):
		zone, rest, _ := strings.Cut(expression[strings.Index(expression, "=")+1:], " ")
		return nil, wrong("%q has a time zone in it", text).
			WithHint("set timeZone to %q, and the expression to %q: one zone holds for all "+
				"times of a schedule", zone, strings.TrimSpace(rest))
	case strings.HasPrefix(upper, "@EVERY"):
		return nil, wrong("%q is not at times of the clock", text).
			WithHint(`use every in place of cron: {"every": %q}`,
				cmp.Or(strings.TrimSpace(expression[len("@every"):]), "5m"))
	case strings.HasPrefix(upper, "@"):
		macro, ok := macros[strings.ToLower(expression)]
		if !ok {
			return nil, wrong("%q is not known", text).
				WithHint(
					"there are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually")
		}
		expression = macro
	}
	fields := strings.Fields(expression)
	switch len(fields) {
	case 5:
		fields = append([]string{"0"}, fields...)
	case 6:
	case 7:
		return nil, wrong("%q has 7 fields", text).
			WithHint("for times of certain years use calendar, which has a year, in place of cron")
	default:
		return nil, wrong("%q does not have five or six fields, but %d", text, len(fields)).
			WithHint("write five: minute, hour, day of month, month, day of week, as in \"0 9 * " +
				"* MON-FRI\"; or six with the second first")
	}
	return &ops.ScheduleCalendar{
		Second: fields[0], Minute: fields[1], Hour: fields[2],
		DayOfMonth: fields[3], Month: fields[4], DayOfWeek: fields[5], Year: "*",
	}, nil
}

// compileCron reads an expression. The error has no field yet, but the text of the expression.
func compileCron(text string) (*spec, *schemas.Error) {
	fields, err := splitCron(text)
	if err != nil {
		return nil, err
	}
	s, err := compileFields(fields)
	if err != nil {
		err.Message = "cron " + strconv.Quote(text) + ": " + err.Message
		return nil, err
	}
	return s, nil
}
