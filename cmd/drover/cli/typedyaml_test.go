package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// A file says what the JSON of a schedule says; one value may stand for a list of one.
func TestReadYAML(t *testing.T) {
	hour := schemas.Seconds(3600)
	one := int64(1)
	for name, tt := range map[string]struct {
		text string
		want ops.Schedule
	}{
		"JSON": {
			`{"id": "a", "times": {"cron": ["0 3 * * *"], "jitter": 3600}, "remaining": 1}`,
			ops.Schedule{
				ID: "a", Times: &ops.ScheduleTimes{Cron: []string{"0 3 * * *"}, Jitter: hour},
				Remaining: &one,
			},
		},
		"single values": {
			"times:\n  cron: 0 3 * * *\n  every: 24h+1h\n  at: 2026-12-24T18:00:00+01:00\n" +
				"  calendar: {hour: 3, dayOfWeek: SUN}\n  except: {date: 2026-12-25}\n",
			ops.Schedule{Times: &ops.ScheduleTimes{
				Cron: []string{"0 3 * * *"}, Every: []ops.ScheduleInterval{
					{Every: 24 * hour, Offset: hour},
				}, At: []schemas.Timestamp{1798131600e9},
				Calendar: []ops.ScheduleCalendar{{Hour: "3", DayOfWeek: "SUN"}},
				Except:   []ops.ScheduleException{{Date: "2026-12-25"}},
			}},
		},
		"window": {
			"window: {opens: 02:00, length: 1h, every: 5m, period: week}\n",
			ops.Schedule{
				Window: &ops.ScheduleWindow{Opens: "02:00", Length: hour, Every: hour / 12, Period: "week"},
			},
		},
		"input": {
			"action:\n  start:\n    type: t\n    executionStartToCloseTimeout: NONE\n    attributes: {k: v}\n" +
				"    input: {n: 12345678901234567890, x: 0x10, list: [true, null, \"1\"], f: 1.50}\noverlap: allow\npaused: true\n",
			ops.Schedule{Action: ops.ScheduleAction{Start: &schemas.StartRequest{
				Type: "t", ExecutionStartToCloseTimeout: schemas.Unlimited, Attributes: map[string]string{
					"k": "v",
				},
				Input: schemas.Payload(`{"n":12345678901234567890,"x":16,"list":[true,null,"1"],"f":1.50}`),
			}}, Overlap: ops.OverlapAllow, Paused: true},
		},
	} {
		var got ops.Schedule
		if err := ReadYAML([]byte(tt.text), &got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Bad input: the line and the field, and what would be right.
func TestReadYAMLRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "it is empty",
		"# nothing\n":                            "it is empty",
		"times: [":                               "line 1: did not find expected node content",
		"a: 1\n---\nb: 1\n":                      "there is more than one document in it",
		"- 1\n":                                  "line 1: want fields with values",
		"times:\n  corn: x\n":                    `line 2: times: there is no field "corn"; did you mean cron?`,
		"frobnicate: 1\n":                        `line 1: there is no field "frobnicate"; there are id, times, window`,
		"id: a\nid: b\n":                         "line 2: id: it stands twice",
		"times:\n  every: 0\n":                   "line 2: times.every: want a distance such as 5m",
		"times:\n  every: [5m, {every: soon}]\n": `line 2: times.every[1].every: duration "soon": want seconds`,
		"times:\n  from: tomorrow\n":             `line 2: times.from: time "tomorrow": want RFC 3339`,
		"paused: 3\n":                            "line 1: paused: a number does not belong there",
		"paused: maybe\n":                        "line 1: paused: a string does not belong there",
		"remaining: 1.5\n":                       "line 1: remaining: a number 1.5 does not belong there",
		"note: {a: b}\n":                         "line 1: note: a object does not belong there",
		"times: &x {cron: a}\nwindow: *x\n":      "line 2: window: aliases are not for this file",
		"action: {start: {input: {f: .inf}}}\n":  "line 1: .inf is no number of JSON",
	} {
		var got ops.Schedule
		err := ReadYAML([]byte(text), &got)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
